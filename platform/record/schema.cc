#include <nlohmann/json.hpp>

#include "record/field.h"
#include "record/type.h"

namespace muster::record {

namespace {

Schema reference_to(std::string_view name) {
  return {{"$ref", "#/components/schemas/" + std::string(name)}};
}

/// A default that is a plain value; an empty list or text is omitted.
void add_default(const Table& table, const Row& row, Schema& schema) {
  const void* value = row.member_of(table.defaults());
  if (row.type->table() != nullptr || row.type->is_absent(value)) return;
  std::string text;
  JsonWriter json(text);
  row.type->write(json, value, Form::kWire);
  const Schema fallback = Schema::parse(text);
  const bool is_empty =
      (fallback.is_structured() || fallback.is_string()) && (fallback.empty() || fallback == "");
  if (!is_empty) schema["default"] = fallback;
}

/// Adds the row's schema to the schema of its type; replaces it if the row's schema has a type
/// itself.
void add_to(Schema& schema, Schema more) {
  if (more.contains("type") || more.contains("oneOf")) {
    schema = std::move(more);
  } else {
    schema.update(more);
  }
}

/// The flag of the commands that submit a job. "x-inner-flags": the fields within have their flags
/// here.
void add_flag(const Row& row, Schema& schema) {
  const Flag& flag = row.notes.flag;
  if (flag.name != nullptr && *flag.name == '-') {
    schema["x-flag"] = flag.name;
    if (flag.value == nullptr && (!flag.by_hand || row.type->is_flag())) {
      schema["x-flag-means"] = flag.means == nullptr ? "true" : flag.means;
    }
  }
  if (row.notes.gives_inner_flags) schema["x-inner-flags"] = true;
}

bool is_always_there(const Table& table, const Row& row) {
  if (row.notes.need != Need::kOptional) return true;
  return table.is_answer() && row.notes.sent == Sent::kAlways;
}

Schema schema_of_row(const Table& table, const Row& row, Schemas& schemas) {
  Schema schema = row.type->schema(row.notes, schemas);
  const bool is_required = is_always_there(table, row);
  const bool is_optional = !is_required && !table.is_answer();
  if (row.notes.schema != nullptr) add_to(schema, Schema::parse(row.notes.schema));
  if (row.notes.most_items != 0) {
    schema[schema["type"] == "array" ? "maxItems" : "maxProperties"] = row.notes.most_items;
  }
  // Null is either the same as absence, or has its own meaning.
  if (is_optional || row.notes.null != nullptr) schema = nullable(std::move(schema));
  if (row.notes.null != nullptr && !table.is_answer()) schema["x-null"] = row.notes.null;
  if (*row.notes.help != '\0') schema["description"] = row.notes.help;
  add_flag(row, schema);
  if (is_optional) add_default(table, row, schema);
  return schema;
}

}  // namespace

Schemas::Schemas() : all_(std::make_unique<Schema>(Schema::object())) {}
Schemas::~Schemas() = default;

void Schemas::add(const Table& table) {
  schema_of_table(table, *this);
}

bool Schemas::has(std::string_view name) const {
  return all_->contains(name);
}

void Schemas::set(const std::string& name, Schema schema) {
  (*all_)[name] = std::move(schema);
}

Schema nullable(Schema schema) {
  if (schema.contains("$ref") || schema.contains("oneOf")) {
    return {{"anyOf", {std::move(schema), {{"type", "null"}}}}};
  }
  if (schema.contains("type")) schema["type"] = {schema["type"], "null"};
  return schema;
}

void Schemas::add_list(const std::string& name, const char* list, const Table& table,
                       const char* help) {
  Schema items = schema_of_list(schema_of_table(table, *this));
  if (*help != '\0') items["description"] = help;
  set(name, {{"type", "object"}, {"required", {list}}, {"properties", {{list, std::move(items)}}}});
}

Schema schema_of_table(const Table& table, Schemas& schemas) {
  if (schemas.has(table.name())) return reference_to(table.name());
  // Added first, because its schema may refer to itself.
  schemas.set(table.name(), Schema::object());
  Schema schema{{"type", "object"}};
  if (*table.help() != '\0') schema["description"] = table.help();
  Schema required = Schema::array();
  Schema properties = Schema::object();
  for (const Row& row : table.rows()) {
    if (!row.is_in(Form::kWire)) continue;
    if (is_always_there(table, row)) required.push_back(row.wire_name);
    properties[row.wire_name] = schema_of_row(table, row, schemas);
  }
  if (!required.empty()) schema["required"] = std::move(required);
  if (!table.is_answer()) schema["additionalProperties"] = false;
  schema["properties"] = std::move(properties);
  schemas.set(table.name(), std::move(schema));
  return reference_to(table.name());
}

Schema schema_of_words(std::string_view name, std::string_view help,
                       const std::vector<std::string>& words, Schemas& schemas) {
  if (!schemas.has(name)) {
    Schema schema{{"type", "string"}, {"enum", words}};
    if (!help.empty()) schema["description"] = help;
    schemas.set(std::string(name), std::move(schema));
  }
  return reference_to(name);
}

Schema schema_of_prose() {
  return {{"type", "string"}};
}

Schema schema_of_pairs(Schema value) {
  return {{"type", "object"}, {"additionalProperties", std::move(value)}};
}

Schema schema_of_list(Schema element) {
  return {{"type", "array"}, {"items", std::move(element)}};
}

}  // namespace muster::record
