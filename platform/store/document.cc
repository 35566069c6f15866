#include "store/document.h"

#include "record/fields.h"

namespace muster::store::detail {

using base::Error;
using base::ErrorCode;

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
  std::string document;
  record::JsonWriter writer(document, record::JsonWriter::Encoding::kCbor);
  table.write(writer, value, record::Form::kStore);
  return document;
}

base::Result<void> read_document(std::string_view document, const record::Table& table,
                                 void* into) {
  const auto tree = record::ValueTree::of_cbor(document);
  if (!tree) return unreadable(table, "it is not CBOR");
  const auto read = record::read_document(
      tree->root(), "document", [&](record::Fields& fields) { fields.record(table, into); },
      record::Unknown::kRefused, record::Form::kStore);
  if (!read) return unreadable(table, in_one_line(read.error()));
  return {};
}

}  // namespace muster::store::detail
