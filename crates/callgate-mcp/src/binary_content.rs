//! Sets binary content of results (images, audio, files) aside before policies run: a search for sensitive data would find false
//! positives in it and corrupt it.

use data_encoding::BASE64;

use callgate::json::Value;

/// Shorter content is searched all the same: a card number is valid base64, too.
const MIN_LENGTH: usize = 256;

/// Binary content taken out of a result.
#[derive(Debug, Default)]
pub(super) struct DetachedBinary {
    contents: Vec<(String, String)>,
}

impl DetachedBinary {
    /// Replaces long binary content in a result by unguessable placeholders. Returns whether there was any.
    pub(super) fn detach_from(&mut self, result: &mut Value) -> bool {
        let before = self.contents.len();
        // Of tools, and of resources.
        for (member, is_resource) in [("content", false), ("contents", true)] {
            let Some(Value::Array(parts)) = result.get_mut(member) else { continue };
            for part in parts {
                let kind = part.get("type").and_then(Value::as_str).unwrap_or_default();
                let data = match kind {
                    _ if is_resource => part.get_mut("blob"),
                    "image" | "audio" => part.get_mut("data"),
                    "resource" => part.get_mut("resource").and_then(|resource| resource.get_mut("blob")),
                    _ => None,
                };
                self.detach(data);
            }
        }
        self.contents.len() > before
    }

    /// Replaces a string by a placeholder if it is long binary content.
    fn detach(&mut self, data: Option<&mut Value>) {
        if let Some(Value::String(data)) = data
            && data.len() >= MIN_LENGTH
            && BASE64.decode_len(data.len()).is_ok()
            && BASE64.decode(data.as_bytes()).is_ok()
        {
            let mark = format!("binary-{:016x}{:016x}", fastrand::u64(..), fastrand::u64(..));
            self.contents.push((mark.clone(), std::mem::replace(data, mark)));
        }
    }

    /// Puts the content back wherever its placeholder is still present.
    pub(super) fn reattach(mut self, result: &mut Value) {
        if !self.contents.is_empty() {
            self.reattach_in(result);
        }
    }

    fn reattach_in(&mut self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Some(position) = self.contents.iter().position(|(mark, _)| mark == text) {
                    *text = self.contents.swap_remove(position).1;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.reattach_in(item)),
            Value::Object(members) => members.values_mut().for_each(|item| self.reattach_in(item)),
            _ => {}
        }
    }
}
