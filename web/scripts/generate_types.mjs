// Writes src/api/types.ts: a TypeScript type for each schema of the OpenAPI document.
//
//   node scripts/generate_types.mjs ../build/release/openapi.json
//
// The types are erased by the compiler, so they change no byte of dist/.
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
    case 'string': return 'string';
    case 'integer':
    case 'number': return 'number';
    case 'boolean': return 'boolean';
    case 'null': return 'null';
    case 'array': {
      const item = type_of(schema.items, indent);
      return item.includes(' ') && !item.startsWith('{') ? `(${item})[]` : `${item}[]`;
    }
    case 'object': return object_type(schema, indent);
    default: return 'unknown';
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
