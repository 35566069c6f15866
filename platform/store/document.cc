#include "store/document.h"

#include <nlohmann/json.hpp>

#include "record/fields.h"

namespace muster::store::detail {

using base::Error;
using base::ErrorCode;
using nlohmann::json;

namespace {

Error unreadable(const record::Table& table, const std::string& why) {
  return {.code = ErrorCode::kInternal,
          .what = "the document of type " + table.name() + " is not valid: " + why};
}

/// "tasks[0].phase is missing; workers must be a whole number, not text"
std::string in_one_line(const Error& error) {
  std::string text;
  for (const base::Fault& fault : error.faults) {
    text += (text.empty() ? "" : "; ") + fault.field + " " + fault.what;
  }
  return text.empty() ? error.what : text;
}

}  // namespace

std::string document_of(const record::Table& table, const void* value) {
  std::string text;
  record::JsonWriter writer(text);
  table.write(writer, value, record::Form::kStore);
  std::string document;
  json::to_cbor(json::parse(text), document);
  return document;
}

base::Result<void> read_document(std::string_view document, const record::Table& table,
                                 void* into) {
  const json value = json::from_cbor(document, true, false);
  if (value.is_discarded()) return unreadable(table, "it is not CBOR");
  const auto read = record::read_document(
      value, "document", [&](record::Fields& fields) { fields.record(table, into); },
      record::Unknown::kRefused, record::Form::kStore);
  if (!read) return unreadable(table, in_one_line(read.error()));
  return {};
}

}  // namespace muster::store::detail
