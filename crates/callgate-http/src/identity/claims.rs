//! Maps the claims of a token to the context of calls.

use super::TokenError;
use callgate::json::{Map, Value};
use callgate::principal::{Principal, PrincipalComparison};

/// Which claim is mapped to which member of the context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ClaimMapping {
    pub(super) principal: String,
    /// Prepended to each principal, so that two issuers never name the same one.
    pub(super) prefix: String,
    pub(super) roles: Option<String>,
    pub(super) tenant: Option<String>,
    /// Claims that are copied unchanged.
    pub(super) copied_claims: Vec<String>,
    /// The fixed context of all callers.
    pub(super) context: Map,
}

impl ClaimMapping {
    /// Maps claims to a context.
    ///
    /// # Errors
    /// There is no principal, or a mapped claim has the wrong type.
    pub(super) fn map_claims(&self, claims: &Map) -> Result<Map, TokenError> {
        let mut context = self.context.clone();
        let principal = string_claim(claims, &self.principal)?.ok_or_else(|| {
            TokenError::new(format!("the token lacks the claim `{}`, the principal", self.principal))
        })?;
        if Principal::parse(&principal, PrincipalComparison::Canonical).is_none() {
            return Err(TokenError::new(format!(
                "the claim `{}` of the token is blank or has control characters",
                self.principal
            )));
        }
        context.insert("principal", format!("{}{principal}", self.prefix).into());
        if let Some(name) = &self.roles {
            let roles = match claim(claims, name) {
                None | Some(Value::Null) => Vec::new(),
                // Separated by spaces, as in `scope`.
                Some(Value::String(words)) => words.split_whitespace().map(Value::from).collect(),
                Some(Value::Array(roles)) if roles.iter().all(Value::is_string) => roles.clone(),
                Some(_) => {
                    let why = format!("the claim `{name}` of the token is not an array of strings");
                    return Err(TokenError::new(why));
                }
            };
            context.insert("roles", Value::Array(roles));
        }
        if let Some(name) = &self.tenant {
            // Without a tenant, the call would count as one that belongs to no tenant.
            let tenant = string_claim(claims, name)?
                .ok_or_else(|| TokenError::new(format!("the token lacks the claim `{name}`, the tenant")))?;
            context.insert("tenant", tenant.into());
        }
        let copied_claims: Map = self
            .copied_claims
            .iter()
            .filter_map(|name| Some((name.clone(), claim(claims, name)?.clone())))
            .collect();
        if !self.copied_claims.is_empty() {
            context.insert("claims", Value::Object(copied_claims));
        }
        Ok(context)
    }
}

/// A claim by its name or, if there is none of the whole name, by its path, as in `realm_access.roles`.
fn claim<'c>(claims: &'c Map, name: &str) -> Option<&'c Value> {
    claims.get(name).or_else(|| {
        let mut way = name.split('.');
        let first = claims.get(way.next()?)?;
        way.try_fold(first, |value, name| value.get(name))
    })
}

fn string_claim(claims: &Map, name: &str) -> Result<Option<String>, TokenError> {
    match claim(claims, name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if !text.is_empty() => Ok(Some(text.clone())),
        Some(_) => Err(TokenError::new(format!("the claim `{name}` of the token is not a non-empty string"))),
    }
}

#[cfg(test)]
mod tests {
    use callgate::json::json;

    use super::*;

    fn context(claims: Value) -> Result<Value, TokenError> {
        let mapping = ClaimMapping {
            principal: "sub".into(),
            prefix: String::new(),
            roles: Some("realm_access.roles".into()),
            tenant: Some("https://example.com/tenant".into()),
            copied_claims: vec!["email".into()],
            context: Map::from_iter([("team".to_owned(), json!("red"))]),
        };
        mapping.map_claims(claims.as_object().unwrap()).map(Value::Object)
    }

    #[test]
    fn finds_claims_by_name_and_by_path() {
        let claims = json!({ "sub": "ann", "realm_access": { "roles": ["a", "b"] }, "https://example.com/tenant": "t",
            "email": "ann@example.com", "admin": true });
        let expected = json!({ "team": "red", "principal": "ann", "roles": ["a", "b"], "tenant": "t",
            "claims": { "email": "ann@example.com" } });
        assert_eq!(context(claims), Ok(expected));
    }

    #[test]
    fn rejects_missing_claims_and_wrong_types() {
        for claims in [
            json!({ "https://example.com/tenant": "t" }),
            json!({ "sub": "", "https://example.com/tenant": "t" }),
            json!({ "sub": "\u{a0}\u{200b}", "https://example.com/tenant": "t" }),
            json!({ "sub": "ann\u{0}", "https://example.com/tenant": "t" }),
            json!({ "sub": 7, "https://example.com/tenant": "t" }),
            json!({ "sub": "ann" }),
            json!({ "sub": "ann", "https://example.com/tenant": "t", "realm_access": { "roles": [1] } }),
        ] {
            assert!(context(claims.clone()).is_err(), "{claims}");
        }
    }

    #[test]
    fn splits_roles_at_spaces() {
        let claims =
            json!({ "sub": "ann", "https://example.com/tenant": "t", "realm_access": { "roles": "a b" } });
        assert_eq!(context(claims).unwrap()["roles"], json!(["a", "b"]));
    }
}
