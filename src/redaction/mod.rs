//! Sensitive data detection in text and JSON values: typed detectors, and the [`Redactor`] that removes their matches.
//!
//! Text is normalized before detection (see `fold`): digits of other scripts, compatibility forms, invisible characters, control
//! characters and escapes do not hide a value. Not resolved: letters of other scripts that look Latin, words such as "at" for `@`,
//! and a value split over several strings.

mod normalized_text;
mod detector_input;
mod checksum;
mod base64;
mod placeholder;
mod email_and_phone;
mod cards_and_iban;
mod network;
mod national_ids;
mod credentials;
mod entropy;
mod redacted_ranges;
mod redactor;
mod json_redaction;
mod prefilter;
mod redaction_rule;
mod stream_redactor;

pub use json_redaction::NestingError;
pub use redaction_rule::Replacement;
pub use redactor::{RedactionStyle, Redactor};
pub use stream_redactor::{MAX_HELD, MatchTooLongError, StreamRedactor};

use std::ops::Range;

use detector_input::{DetectorInput, JsonKeys};
use normalized_text::NormalizedText;

/// One kind of sensitive data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "`description` documents each variant")]
pub enum Detector {
    Email,
    Phone,
    PaymentCard,
    Iban,
    IpAddress,
    MacAddress,
    UrlCredentials,
    UsSsn,
    UkNhs,
    CaSin,
    FrNir,
    EsDni,
    ItCodiceFiscale,
    DeSteuerId,
    NlBsn,
    BrCpf,
    PlPesel,
    InAadhaar,
    SePersonnummer,
    AuTfn,
    Jwt,
    PrivateKey,
    ApiKey,
    HighEntropy,
}

impl Detector {
    /// Every detector, in display order.
    pub const ALL: [Self; 24] = [
        Self::Email,
        Self::Phone,
        Self::PaymentCard,
        Self::Iban,
        Self::IpAddress,
        Self::MacAddress,
        Self::UrlCredentials,
        Self::UsSsn,
        Self::UkNhs,
        Self::CaSin,
        Self::FrNir,
        Self::EsDni,
        Self::ItCodiceFiscale,
        Self::DeSteuerId,
        Self::NlBsn,
        Self::BrCpf,
        Self::PlPesel,
        Self::InAadhaar,
        Self::SePersonnummer,
        Self::AuTfn,
        Self::Jwt,
        Self::PrivateKey,
        Self::ApiKey,
        Self::HighEntropy,
    ];

    /// The name in policies and in redaction labels.
    pub fn name(self) -> &'static str {
        match self {
            Self::Email => "email",
            Self::Phone => "phone",
            Self::PaymentCard => "payment_card",
            Self::Iban => "iban",
            Self::IpAddress => "ip_address",
            Self::MacAddress => "mac_address",
            Self::UrlCredentials => "url_credentials",
            Self::UsSsn => "us_ssn",
            Self::UkNhs => "uk_nhs",
            Self::CaSin => "ca_sin",
            Self::FrNir => "fr_nir",
            Self::EsDni => "es_dni",
            Self::ItCodiceFiscale => "it_codice_fiscale",
            Self::DeSteuerId => "de_steuer_id",
            Self::NlBsn => "nl_bsn",
            Self::BrCpf => "br_cpf",
            Self::PlPesel => "pl_pesel",
            Self::InAadhaar => "in_aadhaar",
            Self::SePersonnummer => "se_personnummer",
            Self::AuTfn => "au_tfn",
            Self::Jwt => "jwt",
            Self::PrivateKey => "private_key",
            Self::ApiKey => "api_key",
            Self::HighEntropy => "high_entropy",
        }
    }

    /// Returns the detector with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|detector| detector.name() == name)
    }

    /// Returns the detector that another name for its values probably means, as `credit_card`.
    pub fn meant_by(name: &str) -> Option<Self> {
        let name = name.to_lowercase().replace(['-', ' '], "_");
        Some(match name.as_str() {
            "credit_card" | "creditcard" | "card" | "card_number" | "debit_card" => Self::PaymentCard,
            "mail" | "e_mail" | "email_address" | "mail_address" => Self::Email,
            "telephone" | "phone_number" => Self::Phone,
            "ip" | "ipv4" | "ipv6" => Self::IpAddress,
            "mac" => Self::MacAddress,
            "ssn" | "social_security_number" => Self::UsSsn,
            "secret" | "token" | "apikey" | "access_key" => Self::ApiKey,
            _ => return None,
        })
    }

    /// A one-line description of the values it detects.
    pub fn description(self) -> &'static str {
        match self {
            Self::Email => "e-mail addresses, also percent-encoded ones",
            Self::Phone => {
                "telephone numbers: international, well-known national forms, others after a word such as `phone`"
            }
            Self::PaymentCard => {
                "payment card numbers with a known issuer and a valid check digit, also grouped"
            }
            Self::Iban => "international bank account numbers (IBAN) with a valid checksum",
            Self::IpAddress => "IPv4 and IPv6 addresses, except loopback, broadcast and unspecified ones",
            Self::MacAddress => "MAC addresses (hardware addresses of network interfaces)",
            Self::UrlCredentials => "`user:password` in URLs and database source names",
            Self::UsSsn => "US social security numbers: dashed, or other forms near a word such as `ssn`",
            Self::UkNhs => "NHS numbers near a word such as `nhs` or `patient`",
            Self::CaSin => "Canadian social insurance numbers near a word such as `sin`",
            Self::FrNir => "French social security numbers",
            Self::EsDni => "Spanish DNI and NIE numbers",
            Self::ItCodiceFiscale => "Italian codice fiscale numbers",
            Self::DeSteuerId => "German tax ids near a word such as `steuer-id`",
            Self::NlBsn => "Dutch citizen service numbers near a word such as `bsn`",
            Self::BrCpf => "Brazilian CPF numbers; unformatted digits only near a word such as `cpf`",
            Self::PlPesel => "Polish PESEL numbers near the word `pesel`",
            Self::InAadhaar => "Indian Aadhaar numbers near a word such as `aadhaar`",
            Self::SePersonnummer => {
                "Swedish personnummer; unformatted digits only near a word such as `personnummer`"
            }
            Self::AuTfn => "Australian tax file numbers near a word such as `tfn`",
            Self::Jwt => "JSON web tokens",
            Self::PrivateKey => "private keys: whole PEM, OpenSSH, PGP and PuTTY blocks",
            Self::ApiKey => "API keys and access tokens of well-known providers, and `Authorization` headers",
            Self::HighEntropy => {
                "high-entropy secrets: values of keys such as `password` or `secret`, and long random tokens"
            }
        }
    }

    /// Returns the byte ranges of all matches in order; they may overlap.
    pub fn find(self, text: &str) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        for folded in NormalizedText::readings(text) {
            let subject = DetectorInput { text: folded.text(), keys: JsonKeys::default() };
            found.extend(self.find_in(&subject).iter().map(|range| folded.original_range(range)));
        }
        found.sort_by_key(|range| (range.start, range.end));
        found.dedup();
        found
    }

    fn find_in(self, subject: &DetectorInput<'_>) -> Vec<Range<usize>> {
        match self {
            Self::Email => email_and_phone::email(subject),
            Self::Phone => email_and_phone::phone(subject),
            Self::PaymentCard => cards_and_iban::payment_card(subject),
            Self::Iban => cards_and_iban::iban(subject),
            Self::IpAddress => network::ip_address(subject),
            Self::MacAddress => network::mac_address(subject),
            Self::UrlCredentials => network::url_credentials(subject),
            Self::UsSsn => national_ids::us_ssn(subject),
            Self::UkNhs => national_ids::UK_NHS.find(subject),
            Self::CaSin => national_ids::CA_SIN.find(subject),
            Self::FrNir => national_ids::FR_NIR.find(subject),
            Self::EsDni => national_ids::ES_DNI.find(subject),
            Self::ItCodiceFiscale => national_ids::IT_CODICE_FISCALE.find(subject),
            Self::DeSteuerId => national_ids::DE_STEUER_ID.find(subject),
            Self::NlBsn => national_ids::NL_BSN.find(subject),
            Self::BrCpf => national_ids::BR_CPF.find(subject),
            Self::PlPesel => national_ids::PL_PESEL.find(subject),
            Self::InAadhaar => national_ids::IN_AADHAAR.find(subject),
            Self::SePersonnummer => national_ids::SE_PERSONNUMMER.find(subject),
            Self::AuTfn => national_ids::AU_TFN.find(subject),
            Self::Jwt => credentials::jwt(subject),
            Self::PrivateKey => credentials::private_key(subject),
            Self::ApiKey => credentials::api_key(subject),
            Self::HighEntropy => entropy::high_entropy(subject),
        }
    }

    /// Returns the canonical spelling of a value, so that `4111 1111 …` and `4111-1111-…` have the same digest.
    fn canonical(self, found: &str) -> String {
        match self {
            Self::Email => found.to_lowercase(),
            Self::IpAddress
            | Self::UrlCredentials
            | Self::Jwt
            | Self::PrivateKey
            | Self::ApiKey
            | Self::HighEntropy => found.to_owned(),
            _ => {
                found.chars().filter(|c| c.is_ascii_alphanumeric()).map(|c| c.to_ascii_uppercase()).collect()
            }
        }
    }
}
