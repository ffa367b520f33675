//! Check digit algorithms. Each function takes a string that is already reduced to the characters named in its description.

/// The values of the ASCII digits in a string.
pub(super) fn digits(text: &str) -> impl DoubleEndedIterator<Item = u32> {
    text.bytes().filter(u8::is_ascii_digit).map(|digit| u32::from(digit - b'0'))
}

/// Luhn: payment cards, SIN, personnummer.
pub(super) fn luhn(text: &str) -> bool {
    let sum: u32 = digits(text)
        .rev()
        .enumerate()
        .map(|(index, digit)| if index % 2 == 0 { digit } else { digit * 2 / 10 + digit * 2 % 10 })
        .sum();
    sum.is_multiple_of(10)
}

/// Whether the weighted sum of the digits is a multiple of `modulus`.
pub(super) fn weighted(text: &str, weights: &[u32], modulus: u32) -> bool {
    digits(text).zip(weights).map(|(digit, weight)| digit * weight).sum::<u32>() % modulus == 0
}

/// ISO 7064 mod 11,10: the German tax id.
pub(super) fn mod_11_10(text: &str) -> bool {
    let mut product = 10;
    let mut all = digits(text);
    let check = all.next_back();
    for digit in all {
        let sum = match (digit + product) % 10 {
            0 => 10,
            sum => sum,
        };
        product = sum * 2 % 11;
    }
    check == Some((11 - product) % 10)
}

/// Verhoeff: Aadhaar.
pub(super) fn verhoeff(text: &str) -> bool {
    const PERMUTATION: [u32; 10] = [1, 5, 7, 6, 2, 8, 3, 0, 9, 4];
    let permuted = |digit: u32, times: usize| {
        (0..times).fold(digit, |digit, _| PERMUTATION.get(digit as usize).copied().unwrap_or(digit))
    };
    let check = digits(text)
        .rev()
        .enumerate()
        .fold(0, |check, (index, digit)| dihedral(check, permuted(digit, index % 8)));
    check == 0
}

/// The product in the dihedral group D5: 0..=4 are rotations, 5..=9 are reflections.
fn dihedral(a: u32, b: u32) -> u32 {
    match (a < 5, b < 5) {
        (true, true) => (a + b) % 5,
        (true, false) => 5 + (a + b) % 5,
        (false, true) => 5 + (a + 5 - b) % 5,
        (false, false) => (a + 5 - (b - 5)) % 5,
    }
}

/// Both check digits of a CPF.
pub(super) fn cpf(text: &str) -> bool {
    let check = |length: usize| {
        let weights = (2..=length as u32 + 1).rev();
        let sum: u32 = digits(text).take(length).zip(weights).map(|(digit, weight)| digit * weight).sum();
        digits(text).nth(length) == Some(sum * 10 % 11 % 10)
    };
    let first = digits(text).next();
    check(9) && check(10) && !digits(text).all(|digit| Some(digit) == first)
}

/// The control key of a French NIR; Corsican departments 2A and 2B count as 19 and 18.
pub(super) fn nir(text: &str) -> bool {
    let numeric = text.replace("2A", "19").replace("2B", "18");
    match (numeric.get(..13).map(str::parse::<u64>), numeric.get(13..).map(str::parse::<u64>)) {
        (Some(Ok(number)), Some(Ok(key))) => key == 97 - number % 97,
        _ => false,
    }
}

/// The check letter of a Spanish DNI or NIE.
pub(super) fn dni(text: &str) -> bool {
    let numeric = text.replace('X', "0").replace('Y', "1").replace('Z', "2");
    // The leading letter of a NIE counts; the trailing letter is the check letter.
    let number = numeric.get(..8).and_then(|digits| digits.parse::<usize>().ok());
    number.and_then(|number| "TRWAGMYFPDXBNJZSQVHLCKE".chars().nth(number % 23)) == text.chars().next_back()
}

/// The check letter of an Italian codice fiscale.
pub(super) fn codice_fiscale(text: &str) -> bool {
    const ODD: [u32; 26] =
        [1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23];
    let mut characters = text.chars();
    let check = characters.next_back();
    let sum: u32 = characters
        .enumerate()
        .filter_map(|(index, c)| {
            // 0 and A, 1 and B, … have the same value.
            let value = c.to_digit(36).map(|value| if value < 10 { value } else { value - 10 })?;
            if index % 2 == 0 { ODD.get(value as usize).copied() } else { Some(value) }
        })
        .sum();
    check.and_then(|check| check.to_digit(36)) == Some(sum % 26 + 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_valid_numbers_and_rejects_any_changed_digit() {
        type Check = fn(&str) -> bool;
        let cases: [(Check, &str); 9] = [
            (luhn, "4111111111111111"),
            (mod_11_10, "86095742719"),
            (verhoeff, "234123412346"),
            (cpf, "52998224725"),
            (nir, "255081416802538"),
            (dni, "12345678Z"),
            (dni, "X1234567L"),
            (codice_fiscale, "RSSMRA85T10A562S"),
            (|text| weighted(text, &[10, 9, 8, 7, 6, 5, 4, 3, 2, 1], 11), "9434765919"),
        ];
        for (check, good) in cases {
            assert!(check(good), "{good}");
            for (index, c) in good.char_indices().filter(|(_, c)| c.is_ascii_digit()) {
                let other = char::from_digit((c.to_digit(10).unwrap() + 1) % 10, 10).unwrap();
                let mut bad = good.to_owned();
                bad.replace_range(index..=index, &other.to_string());
                assert!(!check(&bad), "{bad}");
            }
        }
    }
}
