//! The style of the page. Texts have a contrast of at least 4.5, and shapes of at least 3, in light and dark (WCAG AA).

/// Colours of the light page, by name.
pub(super) const LIGHT: [(&str, &str); 9] = [
    ("ink", "#1c2024"),
    ("soft", "#5b6068"),
    ("line", "#d9dbe0"),
    ("page", "#ffffff"),
    ("ok", "#1f7a48"),
    ("ok2", "#2a78b8"),
    ("ask", "#a86500"),
    ("stop", "#c2382d"),
    ("fail", "#7a4bb5"),
];

/// Colours of the dark page, by name.
pub(super) const DARK: [(&str, &str); 9] = [
    ("ink", "#edeef0"),
    ("soft", "#b0b4ba"),
    ("line", "#3a3d44"),
    ("page", "#15171a"),
    ("ok", "#4fae78"),
    ("ok2", "#5aa9e6"),
    ("ask", "#e0aa3e"),
    ("stop", "#ea7468"),
    ("fail", "#b08fe0"),
];

const RULES: &str = "\
*{box-sizing:border-box}\
body{font:16px/1.5 system-ui,-apple-system,'Segoe UI',sans-serif;color:var(--ink);background:var(--page);max-width:60rem;margin:0 auto;padding:1.5rem 1rem 4rem}\
h1{font-size:1.5rem;line-height:1.2;margin:0}h2{font-size:1.15rem;margin:2.5rem 0 .5rem}p{margin:.35rem 0}\
.soft,figcaption,.x,.y,th,.by{color:var(--soft);font-size:.875rem}\
.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(10.5rem,1fr));gap:.75rem;margin:1.25rem 0 0;padding:0}\
.facts div{border:1px solid var(--line);border-radius:.5rem;padding:.6rem .8rem}.facts dt{color:var(--soft);font-size:.875rem}\
.facts dd{margin:0;font-size:1.5rem;line-height:1.25;font-variant-numeric:tabular-nums}\
.plot{margin:1.5rem 0 0}.area{position:relative;height:11rem;padding-left:3.5rem}\
.area>svg{width:100%;height:100%;display:block;border-bottom:1px solid var(--soft);\
background:linear-gradient(var(--line),var(--line)) 0 0/100% 1px no-repeat,linear-gradient(var(--line),var(--line)) 0 50%/100% 1px no-repeat}\
.y{position:absolute;inset:0 auto 0 0;width:3.1rem;text-align:right;line-height:1;font-variant-numeric:tabular-nums}\
.y span{position:absolute;right:0;transform:translateY(-50%)}.y span:nth-child(1){top:0}.y span:nth-child(2){top:50%}.y span:nth-child(3){top:100%}\
.x{display:flex;justify-content:space-between;gap:1rem;padding:.5rem 0 .25rem 3.5rem}.x span:last-child{text-align:right}\
figcaption{padding-left:3.5rem}.key{display:inline-block;margin-left:.9rem}.key i{display:inline-block;width:.75em;height:.75em;border-radius:.15em;margin-right:.35em}\
table{border-collapse:collapse;width:100%}th{font-weight:600;text-align:left}\
th,td{padding:.45rem .75rem .45rem 0;border-bottom:1px solid var(--line);vertical-align:top;overflow-wrap:anywhere}\
th:last-child,td:last-child{padding-right:0}.n{text-align:right;white-space:nowrap;overflow-wrap:normal;font-variant-numeric:tabular-nums;width:1%}\
.share{width:28%}svg.bar{width:100%;height:.7rem;display:block;margin-top:.4rem}\
.name{font-weight:600}.by{display:block}code,details li{font:.8125rem/1.6 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;overflow-wrap:anywhere}\
details{margin-top:.25rem}summary{cursor:pointer;color:var(--soft);font-size:.875rem}details ul{margin:.35rem 0;padding-left:1.1rem}\
.columns{columns:18rem;column-gap:2rem}.columns li{break-inside:avoid}.warn{border-left:.25rem solid var(--stop);padding:.35rem .75rem}\
@media(max-width:36rem){.share{display:none}.area,.x,figcaption{padding-left:2.6rem}.y{width:2.2rem}.key{margin:0 .9rem 0 0}}\
@media print{body{max-width:none}details:not([open])>summary{display:none}}";

/// The whole style sheet.
pub(super) fn style() -> String {
    let variables = |colours: &[(&str, &str)]| {
        colours.iter().map(|(name, colour)| format!("--{name}:{colour};")).collect::<String>()
    };
    let shapes: String = ["ok", "ok2", "ask", "stop", "fail"]
        .iter()
        .map(|name| format!("rect.{name}{{fill:var(--{name})}}i.{name}{{background:var(--{name})}}"))
        .collect();
    format!(
        ":root{{color-scheme:light dark;{}}}@media(prefers-color-scheme:dark){{:root{{{}}}}}{RULES}{shapes}",
        variables(&LIGHT),
        variables(&DARK)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The relative luminance of a colour, by WCAG.
    fn luminance(colour: &str) -> f64 {
        let part = |at: usize| {
            let value = f64::from(u8::from_str_radix(colour.get(at..at + 2).unwrap(), 16).unwrap()) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
    }

    #[test]
    fn contrasts_are_those_of_wcag_aa() {
        for colours in [LIGHT, DARK] {
            let page = colours.iter().find(|(name, _)| *name == "page").unwrap().1;
            for (name, colour) in colours {
                let needed = match name {
                    "ink" | "soft" => 4.5,
                    "page" | "line" => continue,
                    _ => 3.0,
                };
                let (one, other) = (luminance(page), luminance(colour));
                let contrast = (one.max(other) + 0.05) / (one.min(other) + 0.05);
                assert!(contrast >= needed, "{name} {colour} on {page}: {contrast:.2}");
            }
        }
    }
}
