// Builds elements. All text is set as text, never as markup.

/** An element with attributes, listeners (`onclick`) and children (elements or strings). */
export function element(name, attributes = {}, ...children) {
  const built = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) built.addEventListener(key.slice(2), value);
    else if (key === "class") built.className = value;
    else if (key === "value") built.value = value;
    else built.setAttribute(key, value === true ? "" : String(value));
  }
  built.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return built;
}

const steps = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

/** A time, relative to now, with the exact time as its title. */
export function time(text) {
  const at = new Date(text);
  if (Number.isNaN(at.getTime())) return element("span", {}, text);
  const seconds = Math.round((at.getTime() - Date.now()) / 1000);
  const [unit, length] = steps.find(([, length]) => Math.abs(seconds) >= length) ?? steps[3];
  const words = relative.format(Math.trunc(seconds / length), unit);
  return element("time", { datetime: text, title: at.toLocaleString() }, words);
}

// Invisible and direction-changing characters are shown by their code, so that a text can't look like another one.
const hidden = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb]|[\u{e0000}-\u{e0fff}]|[\u{1d173}-\u{1d17a}]/gu;

/** JSON text of the server, in which characters of markup are escaped for chat products: here they are shown as they are. */
export function readable(json) {
  return visible(json.replace(/\\(u00[2-7][0-9a-f]|.)/g, (escape, code) => {
    if (code.length === 1) return escape;
    const character = String.fromCharCode(parseInt(code.slice(1), 16));
    return character === '"' || character === "\\" ? escape : character;
  }));
}

/** A text that shows what is invisible in it. */
export function visible(text) {
  return String(text).replace(hidden, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);
}
