// The documents of the store: the JSON of a record as its table has it (record/table.h, the form
// kStore), kept as CBOR.
//
// Pure; thread-safe. What cannot be read is kInternal, and names every field that is at fault.
#pragma once

#include <string>
#include <string_view>

#include "access/account_table.h"
#include "base/result.h"
#include "job/notification.h"
#include "job/project.h"
#include "words/job_table.h"

namespace muster::store {

namespace detail {

std::string document_of(const record::Table& table, const void* value);
base::Result<void> read_document(std::string_view document, const record::Table& table, void* into);

}  // namespace detail

template <class T>
std::string to_document(const T& value) {
  return detail::document_of(record::table_for<T>(), &value);
}

template <class T>
base::Result<T> from_document(std::string_view document) {
  T value;
  MUSTER_CHECK(detail::read_document(document, record::table_for<T>(), &value));
  return value;
}

}  // namespace muster::store
