//! Minimal base64 decoder for inspecting tokens.

/// Decodes base64 or base64url, with or without padding, whole bytes only. Returns `None` if a character is in neither alphabet.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut buffer, mut bits) = (0u32, 0);
    for byte in text.trim_end_matches('=').bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        buffer = (buffer << 6 | u32::from(value)) & 0xffff;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((buffer >> bits & 0xff) as u8);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn decodes_both_alphabets_with_and_without_padding() {
        assert_eq!(decode("eyJhIjoxfQ").unwrap(), br#"{"a":1}"#);
        assert_eq!(decode("eyJhIjoxfQ==").unwrap(), br#"{"a":1}"#);
        assert_eq!(decode("-_-_").unwrap(), decode("+/+/").unwrap());
        assert_eq!(decode("a.b"), None);
    }
}
