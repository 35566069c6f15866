// Generates code from the OpenAPI document, which the server writes from its tables of fields:
//
//   src/api/types.ts        a TypeScript type for each schema
//   src/api/spec_fields.ts  the fields of a job's specification: names, defaults and flags
//
//   node scripts/generate_types.mjs ../build/release/openapi.json
import {readFileSync, writeFileSync} from 'node:fs';

const source = process.argv[2] ?? '../build/release/openapi.json';
const document = JSON.parse(readFileSync(source, 'utf8'));
const schemas = document.components.schemas;

function literal(value) {
  return typeof value === 'string' ? `'${value.replaceAll("'", "\\'")}'` : JSON.stringify(value);
}

function type_of(schema, indent) {
  if (schema === true || schema === undefined) return 'unknown';
  if (schema.$ref) return schema.$ref.split('/').at(-1);
  if (schema.const !== undefined) return literal(schema.const);
  if (schema.enum) return schema.enum.map(literal).join(' | ');
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices) return [...new Set(choices.map((each) => type_of(each, indent)))].join(' | ');
  if (Array.isArray(schema.type)) {
    return [...new Set(schema.type.map((each) => type_of({...schema, type: each}, indent)))].join(' | ');
  }
  switch (schema.type) {
    case 'string':
      return 'string';
    case 'integer':
    case 'number':
      return 'number';
    case 'boolean':
      return 'boolean';
    case 'null':
      return 'null';
    case 'array': {
      const item = type_of(schema.items, indent);
      return item.includes(' ') && !item.startsWith('{') ? `(${item})[]` : `${item}[]`;
    }
    case 'object':
      return object_type(schema, indent);
    default:
      return 'unknown';
  }
}

function object_type(schema, indent) {
  const fields = Object.entries(schema.properties ?? {});
  if (fields.length === 0) {
    if (schema.additionalProperties === false) return 'Record<string, never>';
    const value = type_of(schema.additionalProperties ?? true, indent);
    return `Record<string, ${value}>`;
  }
  const required = new Set(schema.required ?? []);
  const lines = fields.map(([name, field]) => {
    const key = /^[A-Za-z_$][\w$]*$/.test(name) ? name : literal(name);
    return `${indent}  ${key}${required.has(name) ? '' : '?'}: ${type_of(field, indent + '  ')};`;
  });
  return `{\n${lines.join('\n')}\n${indent}}`;
}

const out = ['// Generated from the OpenAPI document by scripts/generate_types.mjs; do not edit.\n'];
for (const name of Object.keys(schemas).sort()) {
  out.push(`export type ${name} = ${type_of(schemas[name], '')};\n`);
}
writeFileSync(new URL('../src/api/types.ts', import.meta.url), out.join('\n'));

// --- the fields of a specification

/** The schema without references and null. */
function resolved(schema) {
  let found = schema;
  while (found.$ref || found.anyOf) {
    found = found.$ref ? schemas[found.$ref.split('/').at(-1)] : found.anyOf.find((each) => each.type !== 'null');
  }
  return found;
}

function is_a(schema, type) {
  return schema.type === type || (Array.isArray(schema.type) && schema.type.includes(type));
}

/** The name in job files: the API appends the unit of a number to it. */
function file_name(wire) {
  return wire.replace(/_(bytes|ms)$/, '');
}

function fields_of(schema, has_flags) {
  return Object.fromEntries(
    Object.entries(schema.properties).map(([wire, property]) => {
      const inner = resolved(property);
      const item = inner.items ? resolved(inner.items) : inner;
      const field = {name: file_name(wire)};
      const fallback = property.default ?? inner.default;
      if (fallback !== undefined) field.default = fallback;
      if (has_flags && property['x-flag']) field.flag = property['x-flag'];
      if (has_flags && property['x-flag-means']) field.means = property['x-flag-means'];
      if (is_a(inner, 'object') && !inner.properties) field.map = true;
      if (item.properties) field.fields = fields_of(item, has_flags && property['x-inner-flags'] === true);
      return [wire, field];
    }),
  );
}

const fields = JSON.stringify(fields_of(schemas.JobSpec, true), null, 2);
writeFileSync(
  new URL('../src/api/spec_fields.ts', import.meta.url),
  `// Generated from the OpenAPI document by scripts/generate_types.mjs; do not edit.

export interface SpecField {
  /** The name in job files, without the unit of a number. */
  name: string;
  default?: unknown;
  /** The flag of muster submit. */
  flag?: string;
  /** The value that a flag without an argument sets. */
  means?: string;
  /** The user chooses the keys of the value. */
  map?: true;
  /** The fields of a document, or of each element of a list of documents. */
  fields?: SpecFields;
}

/** Fields by their names in the API. */
export type SpecFields = {[wire: string]: SpecField};

export const kSpecFields: SpecFields = ${fields};
`,
);
