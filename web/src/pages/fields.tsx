// Makes the fields of a form from the schema in the OpenAPI document. The server writes the document from
// the same tables as the flags of the command line, so names, help, defaults and limits are not repeated.
import {useId} from 'preact/hooks';
import {useSignal} from '@preact/signals';
import {get} from '../api/client';
import {parse_size, parse_time, shell_word, size_word, time_word, type Tree} from '../app/spec_text';
import {text_of} from '../app/format';

export interface Schema {
  type?: string | string[];
  $ref?: string;
  anyOf?: Schema[];
  enum?: string[];
  properties?: Record<string, Schema>;
  additionalProperties?: unknown;
  items?: Schema;
  description?: string;
  default?: unknown;
  minimum?: number;
  maximum?: number;
  multipleOf?: number;
  required?: string[];
}

let schemas: Promise<Record<string, Schema>> | null = null;

export async function spec_schema(): Promise<Record<string, Schema>> {
  schemas ??= get<{components: {schemas: Record<string, Schema>}}>('/openapi.json').then(
    (document) => document.components.schemas,
  );
  schemas.catch(() => {
    schemas = null;
  });
  return await schemas;
}

/** The schema without references and null. Help and default of the field itself override those of its type. */
export function resolved(schema: Schema, all: Record<string, Schema>): Schema {
  let found = schema;
  const own = {
    ...(schema.description ? {description: schema.description} : {}),
    ...(schema.default !== undefined ? {default: schema.default} : {}),
  };
  for (let i = 0; i < 5; i++) {
    if (found.$ref) found = all[found.$ref.split('/').at(-1)!] ?? {};
    else if (found.anyOf)
      found = {...found, ...(found.anyOf.find((each) => each.type !== 'null') ?? {}), anyOf: undefined};
    else break;
  }
  const type = Array.isArray(found.type) ? found.type.find((each) => each !== 'null') : found.type;
  return {...found, ...(type ? {type} : {}), ...own};
}

/** Splits a command into words as a shell does. Undefined if a quote is not closed. Pure. */
export function split_words(text: string): string[] | undefined {
  const words: string[] = [];
  let word = '';
  let in_word = false;
  for (let i = 0; i < text.length; i++) {
    const c = text[i]!;
    if (c === "'") {
      const end = text.indexOf("'", i + 1);
      if (end < 0) return undefined;
      word += text.slice(i + 1, end);
      i = end;
      in_word = true;
    } else if (c === '"') {
      in_word = true;
      for (i++; ; i++) {
        if (i >= text.length) return undefined;
        if (text[i] === '"') break;
        if (text[i] === '\\' && /["\\$`]/.test(text[i + 1] ?? '')) i++;
        word += text[i];
      }
    } else if (c === '\\' && i + 1 < text.length) {
      word += text[++i];
      in_word = true;
    } else if (/\s/.test(c)) {
      if (in_word) words.push(word);
      word = '';
      in_word = false;
    } else {
      word += c;
      in_word = true;
    }
  }
  if (in_word) words.push(word);
  return words;
}

export function title_of(name: string): string {
  const plain = name
    .replace(/_(bytes|ms)$/, '')
    .replaceAll('_', ' ')
    .replace(/\bgpus?\b/g, (found) => found.toUpperCase().replace('S', 's'))
    .replace(/\bcpus\b/, 'CPUs')
    .replace(/\bid\b/, 'ID');
  return plain[0]!.toUpperCase() + plain.slice(1);
}

/** A text that is no value of its field. */
export interface InvalidText {
  text: string;
  fault: string;
}

export interface FieldProps {
  name: string;
  schema: Schema;
  value: unknown;
  /** The text of the field in place of a value, which `reject` has reported. */
  invalid: InvalidText | undefined;
  fault: string;
  /** The field has a value. It is valid then. */
  change: (value: unknown) => void;
  /** The text of the field is invalid: until the next change, the form cannot be submitted. */
  reject: (invalid: InvalidText) => void;
}

/** A field of the form. It keeps the text that the user typed. */
export function Field({name, schema, value, invalid, fault, change, reject}: FieldProps) {
  const id = useId();
  const typed = useSignal<{text: string; value: unknown} | null>(null);
  const shown_default =
    schema.default !== undefined && schema.default !== null && schema.default !== ''
      ? ` Default: ${String(schema.default)}.`
      : '';
  const numeric = schema.type === 'integer' || schema.type === 'number' || schema.enum !== undefined;
  const help = `${schema.description ?? ''}${numeric ? '' : shown_default}`.trim();
  const problem = invalid?.fault || fault;
  const common = {
    id,
    'aria-describedby': help ? `${id}-help ${id}-fault` : `${id}-fault`,
    'aria-invalid': problem ? ('true' as const) : undefined,
  };
  const around = (control: unknown) => (
    <div class="field">
      <label for={id}>{title_of(name)}</label>
      {control as never}
      {help && (
        <span class="help" id={`${id}-help`}>
          {help.split('`').map((part, i) => (i % 2 ? <code key={i}>{part}</code> : part))}
        </span>
      )}
      <span class="fault" id={`${id}-fault`}>
        {problem}
      </span>
    </div>
  );

  /** The text that the user typed, as long as it stands for the value: "1.0" must not become "1" before "1.05" is typed. */
  const kept_text = (): string | undefined =>
    invalid?.text ??
    (typed.value && JSON.stringify(typed.value.value) === JSON.stringify(value) ? typed.value.text : undefined);

  /** A control whose text is converted by `show` and `read`. Without a value, `expected` is the fault. */
  const text_control = (
    show: (value: unknown) => string,
    read: (text: string) => unknown,
    expected: string,
    tall?: boolean,
  ) => {
    const text = kept_text() ?? show(value);
    const input = (event: {currentTarget: {value: string}}) => {
      const now = event.currentTarget.value;
      const result = now.trim() === '' ? undefined : read(now);
      if (now.trim() !== '' && result === undefined)
        return reject({text: now, fault: `'${now.trim()}' is not valid: ${expected}`});
      typed.value = {text: now, value: result};
      return change(result);
    };
    return around(
      tall ? (
        <textarea
          {...common}
          class="mono"
          rows={Math.min(8, Math.max(2, text.split('\n').length))}
          spellcheck={false}
          value={text}
          onInput={input}
        />
      ) : (
        <input
          type="text"
          {...common}
          class={name === 'command' || name === 'arguments' ? 'mono' : ''}
          spellcheck={false}
          value={text}
          onInput={input}
        />
      ),
    );
  };

  if (schema.enum)
    return around(
      <select
        {...common}
        value={String(value ?? schema.default ?? '')}
        onChange={(e) => change(e.currentTarget.value || undefined)}
      >
        {schema.default === undefined && <option value="" />}
        {schema.enum.map((each) => (
          <option key={each} selected={each === (value ?? schema.default)}>
            {each}
          </option>
        ))}
      </select>,
    );
  if (schema.type === 'boolean')
    return around(
      <select
        {...common}
        value={value === undefined || value === null ? '' : String(value)}
        onChange={(e) => change(e.currentTarget.value === '' ? undefined : e.currentTarget.value === 'true')}
      >
        <option value="">default</option>
        <option value="true" selected={value === true}>
          yes
        </option>
        <option value="false" selected={value === false}>
          no
        </option>
      </select>,
    );
  if (name.endsWith('_bytes'))
    return text_control(
      (v) => (typeof v === 'number' && v > 0 ? size_word(v) : ''),
      parse_size,
      'give a size such as 512Mi or 16Gi',
    );
  if (name.endsWith('_ms'))
    return text_control(
      (v) => (typeof v === 'number' && v > 0 ? time_word(v) : ''),
      (text) => (/^\d+$/.test(text.trim()) ? Number(text) * 1000 : parse_time(text)),
      'give a time such as 30s, 5m or 12h',
    );
  if (schema.type === 'integer' || schema.type === 'number')
    return around(
      <input
        type="number"
        {...common}
        value={kept_text() ?? (value === undefined || value === null ? '' : String(value))}
        min={schema.minimum}
        max={schema.maximum}
        step={schema.multipleOf ?? (schema.type === 'integer' ? 1 : 'any')}
        placeholder={schema.default !== undefined ? String(schema.default) : ''}
        onInput={({currentTarget: {value: text, validity}}) => {
          typed.value = {text, value: text === '' ? undefined : Number(text)};
          change(typed.value.value);
          // The browser reports no text then; the value is empty, so that the text on the screen stays.
          if (validity.badInput) reject({text: '', fault: 'this is not a number'});
        }}
      />,
    );
  if (schema.type === 'array' && (name === 'command' || name === 'arguments' || name === 'worker_command')) {
    return text_control(
      (v) => (Array.isArray(v) ? v : []).map((word) => shell_word(text_of(word))).join(' '),
      split_words,
      'it has a quote that is not closed',
      true,
    );
  }
  if (schema.type === 'array')
    return text_control(
      (v) => (Array.isArray(v) ? v : []).map(String).join(', '),
      (text) =>
        text
          .split(',')
          .map((each) => each.trim())
          .filter(Boolean),
      '',
    );
  if (schema.type === 'object') {
    return text_control(
      (v) =>
        Object.entries((v ?? {}) as Tree)
          .map(([key, each]) => `${key}=${text_of(each)}`)
          .join('\n'),
      (text) =>
        Object.fromEntries(
          text
            .split('\n')
            .filter((line) => line.trim())
            .map((line) => {
              const at = line.indexOf('=');
              return at < 0 ? [line.trim(), ''] : [line.slice(0, at).trim(), line.slice(at + 1)];
            }),
        ),
      '',
      true,
    );
  }
  return text_control(
    (v) => text_of(v),
    (text) => text,
    '',
  );
}

/** Whether the form can show the field; the job file has all fields. */
export function is_simple(schema: Schema, all: Record<string, Schema>): boolean {
  if (schema.enum) return true;
  if (schema.type === 'object') return !schema.properties;
  if (schema.type === 'array') {
    const item = resolved(schema.items ?? {}, all);
    return item.type === 'string' || item.type === undefined;
  }
  return true;
}
