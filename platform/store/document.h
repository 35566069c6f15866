// What the documents of the store share.
//
// Pure. Reading throws, see cbor_value.h.
#pragma once

#include <chrono>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "store/cbor_value.h"
#include "store/cbor_writer.h"

namespace muster::store {

inline int int_of(const CborValue& value) {
  return value.small_number();
}
inline int64_t number_of(const CborValue& value) {
  return value.number();
}
inline bool flag_of(const CborValue& value) {
  return value.flag();
}
// Arguments and environment may hold any byte; a CBOR text must be UTF-8.
inline std::string bytes_of(const CborValue& value) {
  return value.bytes();
}
inline base::Time time_of(const CborValue& value) {
  return base::Time(std::chrono::nanoseconds(value.number()));
}
inline std::chrono::milliseconds milliseconds_of(const CborValue& value) {
  return std::chrono::milliseconds(value.number());
}

template <class T, class Read>
std::vector<T> list_of(const CborValue& values, Read read) {
  std::vector<T> result;
  result.reserve(values.list().size());
  for (const CborValue& value : values.list()) result.push_back(read(value));
  return result;
}

inline std::vector<int> ints_of(const CborValue& values) {
  return list_of<int>(values, int_of);
}
inline std::vector<std::string> bytes_list_of(const CborValue& values) {
  return list_of<std::string>(values, bytes_of);
}

/// The enum value of a name.
template <class Enum>
Enum value_of(const CborValue& name, std::optional<Enum> (*find)(std::string_view)) {
  return find(name.text()).value();
}

/// Null, or absent because the document is older than the field: `value` stays.
template <class T, class Read>
void read_if_there(const CborValue& map, std::string_view key, T& value, Read read) {
  const CborValue* found = map.find(key);
  if (found != nullptr && !found->is_null()) value = read(*found);
}

inline void write_time(CborWriter& out, base::Time time) {
  out.number(time.time_since_epoch().count());
}

inline void write_bytes_list(CborWriter& out, const std::vector<std::string>& values) {
  out.list(values.size());
  for (const std::string& value : values) out.bytes(value);
}

/// Null where there is none.
template <class T, class Write>
void write_optional(CborWriter& out, const std::optional<T>& value, Write write) {
  if (value) {
    write(*value);
  } else {
    out.null();
  }
}

/// What `read` makes of a document, or its exception as an error.
template <class T>
base::Result<T> read_document(std::string_view document, const char* noun,
                              T (*read)(const CborValue&)) {
  try {
    return read(CborValue::parse(document));
  } catch (const std::exception& error) {
    return base::Error{
        .code = base::ErrorCode::kInternal,
        .what = std::string("the document of a ") + noun + " is not valid: " + error.what()};
  }
}

}  // namespace muster::store
