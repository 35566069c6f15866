#include "api/fields.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/rfc3339.h"
#include "api/utf8.h"
#include "base/base64.h"
#include "base/text.h"

namespace muster::api {

using base::Error;
using base::ErrorCode;
using base::Fault;
using base::Result;

namespace {

/// A list of a million wrong elements needs no million sentences.
constexpr size_t kMostFaults = 100;

std::string_view name_of_type(const Fields::Json& value) {
  switch (value.type()) {
    case Fields::Json::value_t::object:
      return "an object";
    case Fields::Json::value_t::array:
      return "a list";
    case Fields::Json::value_t::string:
      return "text";
    case Fields::Json::value_t::boolean:
      return "true or false";
    case Fields::Json::value_t::number_integer:
    case Fields::Json::value_t::number_unsigned:
      return "a whole number";
    case Fields::Json::value_t::number_float:
      return "a number with a fraction";
    default:
      return "null";
  }
}

std::string element(const std::string& path, size_t index) {
  return path + "[" + std::to_string(index) + "]";
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  // Nobody means a known word by a text of thousands of bytes, and comparing takes its square.
  if (word.size() > 64) return "";
  const std::string near = base::nearest(word, candidates);
  return near.empty() ? "" : "; did you mean '" + near + "'?";
}

/// What the parser says without its own exception's jargon.
Error not_json(std::string_view text, std::string_view noun, size_t byte) {
  const std::string_view before = text.substr(0, byte > 0 ? byte - 1 : 0);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  return {.code = ErrorCode::kInvalid,
          .what = "the " + std::string(noun) + " is no valid JSON: line " + std::to_string(line) +
                  ", byte " + std::to_string(byte),
          .advice = "check quotes, commas and that all text is UTF-8"};
}

Result<Fields::Json> parse(std::string_view text, std::string_view noun) {
  try {
    return Fields::Json::parse(text);
  } catch (const Fields::Json::parse_error& error) {
    return not_json(text, noun, error.byte);
  } catch (const Fields::Json::exception&) {
    return Error{.code = ErrorCode::kInvalid,
                 .what = "the " + std::string(noun) + " holds a number that is out of range"};
  }
}

}  // namespace

Fields::Fields(const Json& object, std::string path, std::vector<Fault>& faults)
    : object_(object), path_(std::move(path)), faults_(faults) {}

void Fields::read(std::string_view name, std::string& into, Need need) {
  if (const Json* value = find(name, need)) {
    if (auto bytes = bytes_of(*value, path_ + std::string(name))) into = *std::move(bytes);
  }
}

void Fields::read(std::string_view name, bool& into, Need need) {
  const Json* value = find(name, need);
  if (value == nullptr) return;
  if (!value->is_boolean()) return expected("true or false", *value, path_ + std::string(name));
  into = value->get_ref<const bool&>();
}

void Fields::read(std::string_view name, base::Time& into, Need need) {
  const Json* value = find(name, need);
  if (value == nullptr) return;
  const std::string path = path_ + std::string(name);
  if (!value->is_string()) return expected("a time as text", *value, path);
  const auto& text = value->get_ref<const std::string&>();
  const auto time = parse_rfc3339(text);
  if (!time) {
    return note(path, "'" + shortened(text) + "' is not a time; write it as 2026-01-31T12:34:56Z");
  }
  into = *time;
}

void Fields::read(std::string_view name, std::vector<std::string>& into, Need need) {
  const Json* value = find(name, need);
  if (value == nullptr) return;
  const std::string path = path_ + std::string(name);
  if (!value->is_array()) return expected("a list of texts", *value, path);
  into.clear();
  for (size_t i = 0; i < value->size(); ++i) {
    if (auto bytes = bytes_of((*value)[i], element(path, i))) into.push_back(*std::move(bytes));
  }
}

void Fields::read(std::string_view name, std::map<std::string, std::string>& into) {
  const Json* value = find(name, Need::kOptional);
  if (value == nullptr) return;
  const std::string path = path_ + std::string(name);
  if (!value->is_object()) return expected("an object of texts", *value, path);
  into.clear();
  for (const auto& [key, entry] : value->items()) {
    if (auto bytes = bytes_of(entry, path + "." + shortened(key))) into[key] = *std::move(bytes);
  }
}

void Fields::read(std::string_view name, std::map<std::string, std::optional<std::string>>& into,
                  Need need) {
  const Json* value = find(name, need);
  if (value == nullptr) return;
  const std::string path = path_ + std::string(name);
  if (!value->is_object()) return expected("an object of texts", *value, path);
  into.clear();
  for (const auto& [key, entry] : value->items()) {
    if (entry.is_null()) {
      into[key].reset();
    } else if (auto bytes = bytes_of(entry, path + "." + shortened(key))) {
      into[key] = *std::move(bytes);
    }
  }
}

void Fields::read_base64(std::string_view name, std::string& into) {
  const Json* value = find(name, Need::kOptional);
  if (value == nullptr) return;
  const std::string path = path_ + std::string(name);
  if (!value->is_string()) return expected("base64 as text", *value, path);
  auto bytes = base::from_base64(value->get_ref<const std::string&>());
  if (!bytes) return note(path, "is no base64");
  into = *std::move(bytes);
}

void Fields::object(std::string_view name, const Read& read, Need need) {
  if (const Json* value = find(name, need)) read_within(*value, path_ + std::string(name), read);
}

void Fields::each(std::string_view name, const Read& read, Need need) {
  const Json* value = find(name, need);
  if (value == nullptr) return;
  const std::string path = path_ + std::string(name);
  if (!value->is_array()) return expected("a list of objects", *value, path);
  for (size_t i = 0; i < value->size(); ++i) read_within((*value)[i], element(path, i), read);
}

void Fields::entries(std::string_view name, const ReadEntry& read) {
  const Json* value = find(name, Need::kOptional);
  if (value == nullptr) return;
  const std::string path = path_ + std::string(name);
  if (!value->is_object()) return expected("an object of objects", *value, path);
  for (const auto& [key, entry] : value->items()) {
    if (entry.is_null()) {
      read(key, nullptr);
    } else {
      read_within(entry, path + "." + shortened(key),
                  [&read, &key = key](Fields& fields) { read(key, &fields); });
    }
  }
}

bool Fields::is_null(std::string_view name) {
  known_.emplace_back(name);
  const auto found = object_.find(name);
  return found != object_.end() && found->is_null();
}

bool Fields::has(std::string_view name) {
  return find(name, Need::kOptional) != nullptr;
}

const Fields::Json* Fields::value(std::string_view name) {
  return find(name, Need::kOptional);
}

void Fields::refuse_unknown() {
  for (const auto& [name, value] : object_.items()) {
    if (std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
    note(path_ + shortened(name), "is not a field" + did_you_mean(name, known_));
  }
}

const Fields::Json* Fields::find(std::string_view name, Need need) {
  known_.emplace_back(name);
  const auto found = object_.find(name);
  if (found != object_.end() && !found->is_null()) return &*found;
  if (need == Need::kRequired) note(path_ + std::string(name), "is missing");
  return nullptr;
}

std::optional<std::string> Fields::bytes_of(const Json& value, const std::string& path) {
  if (value.is_string()) return value.get_ref<const std::string&>();
  if (!value.is_object()) {
    expected("text", value, path);
    return std::nullopt;
  }
  std::string bytes;
  read_within(value, path, [&](Fields& fields) {
    if (!fields.has("base64")) fields.note(path, "must be text, or an object with base64");
    fields.read_base64("base64", bytes);
  });
  return bytes;
}

std::optional<size_t> Fields::choice(std::string_view name, const std::vector<std::string>& names,
                                     Need need) {
  const Json* value = find(name, need);
  if (value == nullptr) return std::nullopt;
  const std::string path = path_ + std::string(name);
  if (!value->is_string()) {
    expected("text", *value, path);
    return std::nullopt;
  }
  const auto& word = value->get_ref<const std::string&>();
  const auto found = std::find(names.begin(), names.end(), word);
  if (found == names.end()) {
    note(path,
         "'" + shortened(word) + "' is none of " + base::joined(names) + did_you_mean(word, names));
    return std::nullopt;
  }
  return static_cast<size_t>(found - names.begin());
}

void Fields::read_within(const Json& value, const std::string& path, const Read& read) {
  if (!value.is_object()) return expected("an object", value, path);
  Fields fields(value, path + ".", faults_);
  read(fields);
  fields.refuse_unknown();
}

void Fields::expected(std::string_view what, const Json& value, const std::string& path) {
  note(path, "must be " + std::string(what) + ", not " + std::string(name_of_type(value)));
}

void Fields::note(std::string path, std::string what) {
  if (faults_.size() >= kMostFaults) return;
  faults_.push_back({.field = std::move(path), .what = std::move(what)});
}

Result<void> read_document(std::string_view text, std::string_view noun, const Fields::Read& read,
                           Unknown unknown) {
  MUSTER_TRY(const Fields::Json document, parse(text, noun));
  if (!document.is_object()) {
    return Error{.code = ErrorCode::kInvalid,
                 .what = "the " + std::string(noun) + " must be an object, not " +
                         std::string(name_of_type(document))};
  }
  std::vector<Fault> faults;
  Fields fields(document, "", faults);
  read(fields);
  if (unknown == Unknown::kRefused) fields.refuse_unknown();
  if (faults.empty()) return {};
  return Error{.code = ErrorCode::kInvalid,
               .what = "the " + std::string(noun) + " has " + std::to_string(faults.size()) +
                       (faults.size() == 1 ? " fault" : " faults"),
               .faults = std::move(faults)};
}

}  // namespace muster::api
