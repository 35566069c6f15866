// Writes a spec as a job file and as a command line. The API's names contain units (memory_bytes,
// grace_ms); a job file has `memory: 16Gi` and `grace: 10s`. Names, defaults and flags come from the
// server's tables of fields (api/spec_fields.ts). The server reads job files: POST /v1/job-file takes the
// tree that parse_yaml() returns.
//
// Pure. Only parse_yaml() needs a YAML library, which it loads at the first call.
import {kSpecFields, type SpecField, type SpecFields} from '../api/spec_fields';
import {text_of} from './format';

export type Tree = {[key: string]: unknown};

const kSizes: [string, number][] = [
  ['Ti', 2 ** 40],
  ['Gi', 2 ** 30],
  ['Mi', 2 ** 20],
  ['Ki', 2 ** 10],
];
const kTimes: [string, number][] = [
  ['d', 86400000],
  ['h', 3600000],
  ['m', 60000],
  ['s', 1000],
  ['ms', 1],
];

export function size_word(bytes: number): string {
  for (const [unit, factor] of kSizes) if (bytes > 0 && bytes % factor === 0) return `${bytes / factor}${unit}`;
  return String(bytes);
}

export function time_word(ms: number): string {
  for (const [unit, factor] of kTimes) if (ms > 0 && ms % factor === 0) return `${ms / factor}${unit}`;
  return '0s';
}

/** Undefined if the text is not a size. As in job files, K means 1024 as Ki does, and so on. */
export function parse_size(value: unknown): number | undefined {
  const found = /^\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B?\s*$/.exec(String(value));
  if (!found) return undefined;
  const power = ['', 'K', 'M', 'G', 'T'].indexOf(found[2]!);
  return Math.round(Number(found[1]) * 1024 ** power);
}

export function parse_time(value: unknown): number | undefined {
  if (typeof value === 'number') return Math.round(value * 1000);
  const found = /^\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?\s*$/.exec(String(value));
  if (!found) return undefined;
  const factor = kTimes.find(([unit]) => unit === (found[2] ?? 's'))![1];
  return Math.round(Number(found[1]) * factor);
}

function is_tree(value: unknown): value is Tree {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The spec with the keys of a job file, without values that are the default. */
export function to_file(spec: Tree, fields: SpecFields = kSpecFields): Tree {
  const out: Tree = {};
  for (const [wire, value] of Object.entries(spec)) {
    const field = fields[wire] ?? {name: wire};
    if (value === null || value === undefined || value === '' || value === field.default) continue;
    const written = value_of_file(wire, value, field);
    if (is_tree(written) || Array.isArray(written) ? Object.keys(written).length : true) out[field.name] = written;
  }
  return out;
}

function value_of_file(wire: string, value: unknown, field: SpecField): unknown {
  if (typeof value === 'number' && wire.endsWith('_bytes')) return size_word(value);
  if (typeof value === 'number' && wire.endsWith('_ms')) return time_word(value);
  if (Array.isArray(value))
    return value.map((each) => (is_tree(each) && field.fields ? to_file(each, field.fields) : each));
  return is_tree(value) && field.fields ? to_file(value, field.fields) : value;
}

/** The value in YAML, with quotes unless YAML reads the plain text as the same text. */
function scalar(value: unknown): string {
  if (typeof value !== 'string') return JSON.stringify(value);
  if (
    /^(--?)?[A-Za-z_./][A-Za-z0-9_./@%+=-]*( [A-Za-z0-9_./@%+=-]+)*$/.test(value) &&
    value !== '---' &&
    value !== '...' &&
    !/^\.\d/.test(value) &&
    !/^(true|false|yes|no|on|off|null|y|n|\.inf|\.nan)$/i.test(value)
  )
    return value;
  if (/^\d+(Ti|Gi|Mi|Ki|ms|s|m|h|d)$/.test(value)) return value;
  return JSON.stringify(value).replace(
    /[\u007f-\u009f\u2028\u2029]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

export function yaml_text(value: unknown, indent = ''): string {
  if (!is_tree(value)) return `${indent}${scalar(value)}\n`;
  let out = '';
  for (const [key, inner] of Object.entries(value)) {
    const name = scalar(key);
    if (Array.isArray(inner)) {
      if (inner.every((each) => !is_tree(each) && !Array.isArray(each))) {
        const long = inner.some((each) => typeof each === 'string' && each.includes('\n'));
        const line = `[${inner.map(flow).join(', ')}]`;
        if (!long && line.length + indent.length + name.length < 100) out += `${indent}${name}: ${line}\n`;
        else
          out += `${indent}${name}:\n` + inner.map((each) => `${indent}  - ${block(each, indent + '    ')}\n`).join('');
      } else {
        out += `${indent}${name}:\n`;
        for (const each of inner) out += `${indent}  - ${yaml_text(each, indent + '    ').slice(indent.length + 4)}`;
      }
    } else if (is_tree(inner)) {
      out += Object.keys(inner).length
        ? `${indent}${name}:\n${yaml_text(inner, indent + '  ')}`
        : `${indent}${name}: {}\n`;
    } else out += `${indent}${name}: ${block(inner, indent + '  ')}\n`;
  }
  return out;
}

function flow(value: unknown): string {
  const text = scalar(value);
  return typeof value === 'string' && text === value && /[,=%@+ ]/.test(value) && /[,\[\]{}]/.test(value)
    ? JSON.stringify(value)
    : text;
}

/** A text of several lines as a literal block, if YAML can write the text unchanged; else a scalar. */
function block(value: unknown, indent: string): string {
  if (
    typeof value !== 'string' ||
    !value.includes('\n') ||
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/.test(value) ||
    /^\s/.test(value)
  )
    return scalar(value);
  const end = value.endsWith('\n');
  if (end && value.endsWith('\n\n')) return scalar(value);
  const body = end ? value.slice(0, -1) : value;
  return `|${end ? '' : '-'}\n${body
    .split('\n')
    .map((line) => (line ? indent + line : ''))
    .join('\n')}`;
}

/** The tree of a job file. Each scalar is the text that was typed: the server converts it. */
export async function parse_yaml(text: string): Promise<Tree> {
  const {load, FAILSAFE_SCHEMA} = await import('js-yaml');
  const tree = load(text, {schema: FAILSAFE_SCHEMA});
  if (!is_tree(tree)) throw new Error('a job file has keys and values, such as name: train');
  return tree;
}

/** The values of a tree by their paths, such as `scheduling.retries`: for comparisons and tables. */
export function flat(value: unknown, path = '', out: Record<string, string> = {}): Record<string, string> {
  if (is_tree(value) && !('base64' in value)) {
    for (const [key, inner] of Object.entries(value)) flat(inner, path ? `${path}.${key}` : key, out);
  } else if (Array.isArray(value)) {
    if (value.some((each) => typeof each === 'object' && each !== null))
      value.forEach((each, i) => flat(each, `${path}[${i}]`, out));
    else
      out[path] = value
        .map((each) =>
          typeof each === 'string' && (path === 'command' || path === 'arguments') ? shell_word(each) : String(each),
        )
        .join(path === 'command' || path === 'arguments' ? ' ' : ', ');
  } else out[path] = value === null || value === undefined ? '' : String(value);
  return out;
}

export function shell_word(word: string): string {
  return /^[A-Za-z0-9_./:=@%+,-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** The command line that submits the same spec. --set sets fields without a flag. */
export function command_line(spec: Tree): string {
  const {name, kind, command: _, arguments: __, ...rest} = to_file(spec);
  const words = ['muster', 'submit', String(kind ?? 'single'), shell_word(String(name ?? 'NAME'))];
  add_flags(words, rest, kSpecFields, '');
  const command = [...((spec['command'] ?? []) as unknown[]), ...((spec['arguments'] ?? []) as unknown[])];
  if (command.length) words.push('--', ...command.map((word) => shell_word(text_of(word))));
  return words.join(' ');
}

function add_flags(words: string[], tree: Tree, fields: SpecFields, path: string): void {
  const by_name = new Map(Object.values(fields).map((field) => [field.name, field]));
  for (const [name, value] of Object.entries(tree)) {
    const field = by_name.get(name);
    const at = path ? `${path}.${name}` : name;
    if (is_tree(value) && !field?.map) add_flags(words, value, field?.fields ?? {}, at);
    else if (!field?.flag || !add_flag(words, field.flag, field.means, value)) add_setting(words, at, value);
  }
}

/** Appends the flag with the value. False: the flag cannot set this value. */
function add_flag(words: string[], flag: string, means: string | undefined, value: unknown): boolean {
  if (means !== undefined) {
    if (String(value) !== means) return false;
    words.push(flag);
    return true;
  }
  const values = is_tree(value)
    ? Object.entries(value).map(([key, each]) => (each === '' ? key : `${key}=${text_of(each)}`))
    : Array.isArray(value)
      ? value
      : [value];
  if (values.some((each) => is_tree(each))) return false;
  for (const each of values) words.push(flag, shell_word(String(each)));
  return true;
}

function add_setting(words: string[], path: string, value: unknown): void {
  if (is_tree(value)) for (const [key, each] of Object.entries(value)) add_setting(words, `${path}.${key}`, each);
  else words.push('--set', shell_word(`${path}=${Array.isArray(value) ? JSON.stringify(value) : String(value)}`));
}
