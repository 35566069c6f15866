// A spec as the text of a job file, and back. The API's names contain their units (memory_bytes,
// grace_ms); a job file writes `memory: 16Gi` and `grace: 10s`.
//
// Pure. Printing needs no YAML library; reading does, and loads it when it is first needed.

export type Tree = {[key: string]: unknown};

const kSizes: [string, number][] = [['Ti', 2 ** 40], ['Gi', 2 ** 30], ['Mi', 2 ** 20], ['Ki', 2 ** 10]];
const kTimes: [string, number][] = [['d', 86400000], ['h', 3600000], ['m', 60000], ['s', 1000], ['ms', 1]];

export function size_word(bytes: number): string {
  for (const [unit, factor] of kSizes) if (bytes > 0 && bytes % factor === 0) return `${bytes / factor}${unit}`;
  return String(bytes);
}

export function time_word(ms: number): string {
  for (const [unit, factor] of kTimes) if (ms > 0 && ms % factor === 0) return `${ms / factor}${unit}`;
  return '0s';
}

/** Nothing if the text is not a size. K, M, G, T count in thousands as Ki... in 1024s, as in job files. */
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

/** Maps whose keys are the user's own, not names of fields. */
const kFree = new Set(['environment', 'labels', 'annotations']);

function is_tree(value: unknown): value is Tree {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const kDefaults: Tree = {
  project: 'default', kind: 'single', workers: 0, slots_per_worker: 1, sandbox: 'bubblewrap', start_timeout_ms: 30000, grace_ms: 10000,
  launch: 'auto', leader_slots: 0, parameter_servers: 0, evaluators: 0, success: 'leader', replaces_entrypoint: true, held: false, input: false, terminal: false,
  chief_is_worker: false, allow_launcher_only: false, purpose: 'train', resize: 'auto', packing: 'auto', retries: 0, gpus: 0, gpu_share: 0, gpu_memory_bytes: 0,
  cpus: 0, memory_bytes: 0, required_topology: '', preferred_topology: '',
};

/** The keys of a job file, without what is the default anyway. */
export function to_file(spec: unknown): unknown {
  if (Array.isArray(spec)) return spec.map(to_file);
  if (!is_tree(spec)) return spec;
  if ('base64' in spec && Object.keys(spec).length === 1) return spec;
  const out: Tree = {};
  for (const [key, value] of Object.entries(spec)) {
    if (value === null || value === undefined || kDefaults[key] === value) continue;
    if (kFree.has(key)) {
      if (is_tree(value) && Object.keys(value).length) out[key] = value;
      continue;
    }
    if (key.endsWith('_bytes') && typeof value === 'number') out[key.slice(0, -6)] = size_word(value);
    else if (key.endsWith('_ms') && typeof value === 'number') out[key.slice(0, -3)] = time_word(value);
    else {
      const inner = to_file(value);
      if (Array.isArray(inner) ? inner.length : is_tree(inner) ? Object.keys(inner).length : true) out[key] = inner;
    }
  }
  return out;
}

/** Names that end with a unit in the API, from their names in a job file. */
const kSizeKeys = new Set(['memory', 'gpu_memory', 'shm']);
const kTimeKeys = new Set(['start_timeout', 'grace', 'time_limit', 'keep_for', 'min_runtime', 'reclaim_min_runtime', 'preempt_min_runtime']);

export interface TextFault { field: string; what: string }

/** The spec of the API from the keys of a job file. */
export function from_file(value: unknown, faults: TextFault[], path = ''): unknown {
  if (Array.isArray(value)) return value.map((each, i) => from_file(each, faults, `${path}[${i}]`));
  if (!is_tree(value)) return value;
  const out: Tree = {};
  for (const [key, inner] of Object.entries(value)) {
    const at = path ? `${path}.${key}` : key;
    if (kFree.has(key) && is_tree(inner)) out[key] = Object.fromEntries(Object.entries(inner).map(([name, text]) => [name, text === null ? '' : is_tree(text) ? text : String(text)]));
    else if (kSizeKeys.has(key)) {
      const size = parse_size(inner);
      if (size === undefined) faults.push({field: at, what: `'${String(inner)}' is not a size such as 16Gi`});
      else out[key + '_bytes'] = size;
    } else if (kTimeKeys.has(key)) {
      const time = parse_time(inner);
      if (time === undefined) faults.push({field: at, what: `'${String(inner)}' is not a time such as 30s, 5m or 12h`});
      else out[key + '_ms'] = time;
    } else if (key === 'command' && path === '' && typeof inner === 'string') out[key] = ['sh', '-c', inner];
    else if ((key === 'command' || key === 'arguments' || key === 'worker_command') && Array.isArray(inner)) out[key] = inner.map((word) => is_tree(word) ? word : String(word));
    else out[key] = from_file(inner, faults, at);
  }
  return out;
}

/** Quoted unless YAML reads the plain text as the same text. */
function scalar(value: unknown): string {
  if (typeof value !== 'string') return JSON.stringify(value);
  if (/^(--?)?[A-Za-z_./][A-Za-z0-9_./@%+=-]*( [A-Za-z0-9_./@%+=-]+)*$/.test(value) && value !== '---' && value !== '...' && !/^\.\d/.test(value) && !/^(true|false|yes|no|on|off|null|y|n|\.inf|\.nan)$/i.test(value)) return value;
  if (/^\d+(Ti|Gi|Mi|Ki|ms|s|m|h|d)$/.test(value)) return value;
  return JSON.stringify(value).replace(/[\u007f-\u009f\u2028\u2029]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
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
        else out += `${indent}${name}:\n` + inner.map((each) => `${indent}  - ${block(each, indent + '    ')}\n`).join('');
      } else {
        out += `${indent}${name}:\n`;
        for (const each of inner) out += `${indent}  - ${yaml_text(each, indent + '    ').slice(indent.length + 4)}`;
      }
    } else if (is_tree(inner)) {
      out += Object.keys(inner).length ? `${indent}${name}:\n${yaml_text(inner, indent + '  ')}` : `${indent}${name}: {}\n`;
    } else out += `${indent}${name}: ${block(inner, indent + '  ')}\n`;
  }
  return out;
}

function flow(value: unknown): string {
  const text = scalar(value);
  return typeof value === 'string' && text === value && /[,=%@+ ]/.test(value) && /[,\[\]{}]/.test(value) ? JSON.stringify(value) : text;
}

/** A text of several lines as a literal block, where YAML can show it as it is. */
function block(value: unknown, indent: string): string {
  // eslint-disable-next-line no-control-regex
  if (typeof value !== 'string' || !value.includes('\n') || /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/.test(value) || /^\s/.test(value)) return scalar(value);
  const end = value.endsWith('\n');
  if (end && value.endsWith('\n\n')) return scalar(value);
  const body = end ? value.slice(0, -1) : value;
  return `|${end ? '' : '-'}\n${body.split('\n').map((line) => line ? indent + line : '').join('\n')}`;
}

export async function parse_yaml(text: string): Promise<unknown> {
  const {load, JSON_SCHEMA} = await import('js-yaml');
  return load(text, {schema: JSON_SCHEMA});
}

/** `scheduling.retries` -> value, for comparing and for tables. */
export function flat(value: unknown, path = '', out: Record<string, string> = {}): Record<string, string> {
  if (is_tree(value) && !('base64' in value)) {
    for (const [key, inner] of Object.entries(value)) flat(inner, path ? `${path}.${key}` : key, out);
  } else if (Array.isArray(value)) {
    if (value.some((each) => typeof each === 'object' && each !== null)) value.forEach((each, i) => flat(each, `${path}[${i}]`, out));
    else out[path] = value.map((each) => typeof each === 'string' && (path === 'command' || path === 'arguments') ? shell_word(each) : String(each)).join(path === 'command' || path === 'arguments' ? ' ' : ', ');
  } else out[path] = value === null || value === undefined ? '' : String(value);
  return out;
}

export function shell_word(word: string): string {
  return /^[A-Za-z0-9_./:=@%+,-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** The command line that submits the same spec. */
export function command_line(spec: Tree): string {
  const file = to_file(spec) as Tree;
  const words = ['muster', 'submit', String(spec['kind'] ?? 'single'), String(spec['name'] ?? 'NAME')];
  const resources = (file['resources'] ?? {}) as Tree;
  const scheduling = (file['scheduling'] ?? {}) as Tree;
  const flag = (name: string, value: unknown) => { if (value !== undefined) words.push(`--${name}`, shell_word(String(value))); };
  flag('project', file['project']);
  flag('workers', file['workers']);
  flag('image', file['image']);
  for (const key of ['gpus', 'cpus', 'memory']) flag(key, resources[key]);
  flag('gpu-share', resources['gpu_share']);
  flag('gpu-memory', resources['gpu_memory']);
  for (const key of ['priority', 'time_limit', 'retries', 'min_workers']) flag(key.replace('_', '-'), scheduling[key]);
  if (scheduling['preemptible'] !== undefined) words.push(scheduling['preemptible'] ? '--preemptible' : '--no-preemptible');
  for (const [name, value] of Object.entries((file['labels'] ?? {}) as Tree)) words.push('--label', shell_word(value ? `${name}=${String(value)}` : name));
  for (const [name, value] of Object.entries((file['environment'] ?? {}) as Tree)) words.push('-e', shell_word(`${name}=${String(value)}`));
  const covered = new Set(['name', 'kind', 'project', 'workers', 'image', 'labels', 'environment', 'command', 'arguments', 'folder', 'resources', 'scheduling']);
  const known = new Set(['priority', 'time_limit', 'retries', 'min_workers', 'preemptible']);
  const rest: Tree = {};
  for (const [key, value] of Object.entries(file)) if (!covered.has(key)) rest[key] = value;
  const more = Object.fromEntries(Object.entries(scheduling).filter(([key]) => !known.has(key)));
  if (Object.keys(more).length) rest['scheduling'] = more;
  if (file['folder'] !== undefined) rest['folder'] = file['folder'];
  for (const [key, value] of set_pairs(rest)) words.push('--set', shell_word(`${key}=${value}`));
  const command = [...((spec['command'] ?? []) as unknown[]), ...((spec['arguments'] ?? []) as unknown[])];
  if (command.length) words.push('--', ...command.map((word) => shell_word(String(word))));
  return words.join(' ');
}

function set_pairs(tree: Tree, path = ''): [string, string][] {
  return Object.entries(tree).flatMap(([key, value]): [string, string][] => {
    const at = path ? `${path}.${key}` : key;
    return is_tree(value) ? set_pairs(value, at) : [[at, Array.isArray(value) ? JSON.stringify(value) : String(value)]];
  });
}
