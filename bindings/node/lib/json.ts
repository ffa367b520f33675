// JSON without loss: numbers that a JavaScript number would round are `bigint` or `ExactNumber`, and what is not JSON is refused.

/** A JSON value. Integers beyond 2^53 are `bigint`; other numbers that a JavaScript number would round are `ExactNumber`. */
export type JsonValue =
  | null
  | boolean
  | number
  | bigint
  | string
  | ExactNumber
  | JsonValue[]
  | { [key: string]: JsonValue };

/** A JSON object. */
export type JsonObject = { [key: string]: JsonValue };

const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/** A JSON number with more digits than a JavaScript number holds, as it was written. */
export class ExactNumber {
  /** The number as JSON. */
  readonly text: string;

  constructor(text: string) {
    if (!NUMBER.test(text)) {
      throw new TypeError(`${JSON.stringify(text)} is not a JSON number`);
    }
    this.text = text;
    Object.freeze(this);
  }

  /** The number as JSON. */
  toString(): string {
    return this.text;
  }

  /** The nearest JavaScript number, which is another number. */
  valueOf(): number {
    return Number(this.text);
  }
}

const LONGEST_PATH = 80;

/** A value that JSON can't express. */
export class NotJsonError extends TypeError {
  override name = 'NotJsonError';
  /** Where the value is, such as `$.items[2].price`. */
  readonly path: string;

  constructor(message: string, path: string) {
    const shown = path.length > LONGEST_PATH ? `${path.slice(0, LONGEST_PATH)}…` : path;
    super(`${message} at ${shown}`);
    this.path = path;
  }
}

/** How deeply values may be nested. The reader on the other side has the same bound. */
const MAX_DEPTH = 128;

/** Writes a value as JSON. `undefined` members and the like are left out, as `JSON.stringify` does. */
export function stringifyJson(value: unknown): string {
  // What has only plain values is written by `JSON.stringify`, which is faster.
  if (isPlain(value, 0)) {
    return JSON.stringify(value);
  }
  return write(value, '$', 0) ?? 'null';
}

/** Whether `JSON.stringify` writes the value as `write` does. */
function isPlain(value: unknown, depth: number): boolean {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return true;
    case 'number':
      return Number.isFinite(value);
    case 'object':
      break;
    default:
      return false;
  }
  if (value === null) {
    return true;
  }
  if (depth > MAX_DEPTH) {
    return false;
  }
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index += 1) {
      if (!isPlain(value[index], depth + 1)) {
        return false;
      }
    }
    return (value as { toJSON?: unknown }).toJSON === undefined;
  }
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) {
    return false;
  }
  const members = value as Record<string, unknown>;
  for (const key in members) {
    const member = members[key];
    if (member !== undefined && !isPlain(member, depth + 1)) {
      return false;
    }
  }
  return members['toJSON'] === undefined;
}

/** Returns `undefined` for what JSON leaves out. */
function write(value: unknown, path: string, depth: number): string | undefined {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return JSON.stringify(value);
    case 'number':
      if (!Number.isFinite(value)) {
        throw new NotJsonError(`${value} is not a JSON number`, path);
      }
      return JSON.stringify(value);
    case 'bigint':
      return value.toString();
    case 'undefined':
    case 'function':
    case 'symbol':
      return undefined;
    default:
      break;
  }
  if (value === null) {
    return 'null';
  }
  if (value instanceof ExactNumber) {
    return value.text;
  }
  if (depth > MAX_DEPTH) {
    throw new NotJsonError('a value that contains itself, or is nested too deeply,', path);
  }
  const object = value as { toJSON?: unknown } & Record<string, unknown>;
  if (typeof object.toJSON === 'function') {
    return write((object.toJSON as () => unknown)(), path, depth + 1);
  }
  if (Array.isArray(value)) {
    const items = value.map((item, index) => write(item, `${path}[${index}]`, depth + 1) ?? 'null');
    return `[${items.join(',')}]`;
  }
  if (value instanceof Number || value instanceof String || value instanceof Boolean) {
    return write(value.valueOf(), path, depth + 1);
  }
  if (value instanceof Map || value instanceof Set || value instanceof Promise || ArrayBuffer.isView(value)) {
    throw new NotJsonError(`a ${value.constructor.name} is not a JSON value`, path);
  }
  const members: string[] = [];
  for (const key of Object.keys(object)) {
    const member = write(object[key], `${path}.${key}`, depth + 1);
    if (member !== undefined) {
      members.push(`${JSON.stringify(key)}:${member}`);
    }
  }
  return `{${members.join(',')}}`;
}

/** Reads JSON. No number is rounded: what a JavaScript number can't hold is a `bigint` or an `ExactNumber`. */
export function parseJson(text: string): JsonValue {
  // Also says what is wrong with an invalid text.
  const value = JSON.parse(text) as JsonValue;
  return hasLongNumber(text) ? new Reader(text).value() : value;
}

/** Reads a text of the native part; its first character says whether `JSON.parse` reads it exactly. */
export function readFlagged(text: string, at = 0): JsonValue {
  const json = text.slice(at + 1);
  return text.charCodeAt(at) === 0x3d ? (JSON.parse(json) as JsonValue) : new Reader(json).value();
}

function hasLongNumber(text: string): boolean {
  return /\d[\d.]{15}|\d[eE]/.test(text);
}

/** Reads a valid JSON text. */
class Reader {
  private at = 0;

  constructor(private readonly text: string) {}

  value(): JsonValue {
    this.skipSpace();
    switch (this.text[this.at]) {
      case '{':
        return this.object();
      case '[':
        return this.array();
      case '"':
        return this.string();
      case 't':
        this.at += 4;
        return true;
      case 'f':
        this.at += 5;
        return false;
      case 'n':
        this.at += 4;
        return null;
      default:
        return this.number();
    }
  }

  private skipSpace(): void {
    while (' \n\r\t'.includes(this.text[this.at] ?? 'x')) {
      this.at += 1;
    }
  }

  private object(): JsonObject {
    const object: JsonObject = {};
    this.at += 1;
    this.skipSpace();
    while (this.text[this.at] !== '}') {
      this.skipSpace();
      const key = this.string();
      this.skipSpace();
      this.at += 1;
      // As `JSON.parse` does: `__proto__` is a member like any other.
      Object.defineProperty(object, key, { value: this.value(), configurable: true, enumerable: true, writable: true });
      this.skipSpace();
      if (this.text[this.at] === ',') {
        this.at += 1;
      }
    }
    this.at += 1;
    return object;
  }

  private array(): JsonValue[] {
    const items: JsonValue[] = [];
    this.at += 1;
    this.skipSpace();
    while (this.text[this.at] !== ']') {
      items.push(this.value());
      this.skipSpace();
      if (this.text[this.at] === ',') {
        this.at += 1;
      }
    }
    this.at += 1;
    return items;
  }

  private string(): string {
    const start = this.at;
    this.at += 1;
    while (this.text[this.at] !== '"') {
      this.at += this.text[this.at] === '\\' ? 2 : 1;
    }
    this.at += 1;
    return JSON.parse(this.text.slice(start, this.at)) as string;
  }

  private number(): JsonValue {
    const found = /[-+\d.eE]+/y;
    found.lastIndex = this.at;
    const text = found.exec(this.text)?.[0] ?? '';
    if (text === '') {
      throw new SyntaxError(`no JSON value at position ${this.at}`);
    }
    this.at += text.length;
    return readNumber(text);
  }
}

function readNumber(text: string): JsonValue {
  const number = Number(text);
  if (/^-?\d+$/.test(text)) {
    return Number.isSafeInteger(number) ? number : BigInt(text);
  }
  return Number.isFinite(number) && decimal(text) === decimal(String(number)) ? number : new ExactNumber(text);
}

/** The digits and the exponent of a number, the same for all texts of one value. */
function decimal(text: string): string {
  const [mantissa = '', exponent = '0'] = text.toLowerCase().split('e');
  const sign = mantissa.startsWith('-') ? '-' : '';
  const [whole = '', fraction = ''] = mantissa.replace('-', '').split('.');
  const digits = (whole + fraction).replace(/^0+/, '');
  const kept = digits.replace(/0+$/, '');
  if (kept === '') {
    return '0';
  }
  const power = BigInt(exponent) - BigInt(fraction.length) + BigInt(digits.length - kept.length);
  return `${sign}${kept}e${power}`;
}
