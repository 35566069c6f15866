#include "record/fields.h"

#include <algorithm>
#include <limits>

#include "record/type.h"

namespace muster::record {

using base::Error;
using base::ErrorCode;
using base::Fault;
using base::Result;

namespace {

template <class T>
constexpr int64_t kLeast = std::numeric_limits<T>::min();
template <class T>
constexpr int64_t kMost = std::numeric_limits<T>::max();

/// The parser's fault without the internals of its exception message.
Error not_json(std::string_view text, std::string_view noun, size_t byte) {
  const std::string_view before = text.substr(0, byte > 0 ? byte - 1 : 0);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  return {.code = ErrorCode::kInvalid,
          .what = "the " + std::string(noun) + " is not valid JSON: line " + std::to_string(line) +
                  ", byte " + std::to_string(byte),
          .advice = "check quotes and commas, and that all text is UTF-8"};
}

Result<ValueTree> parse_json(std::string_view text, std::string_view noun) {
  NotJson fault;
  if (auto tree = ValueTree::of_text(text, &fault)) return *std::move(tree);
  if (!fault.number_out_of_range) return not_json(text, noun, fault.byte);
  return Error{.code = ErrorCode::kInvalid,
               .what = "the " + std::string(noun) + " contains a number that is out of range"};
}

template <class Into, class Value>
void keep(std::optional<Value> value, Into& into) {
  if (value) into = static_cast<Into>(*std::move(value));
}

}  // namespace

template <class Reader, class... More>
auto Fields::read_by(std::string_view name, Need need, Reader reader, const More&... more) {
  using Answer = decltype(reader(std::declval<const Input&>(), more...));
  const Value* value = find(name, need);
  if (value == nullptr) return Answer();
  const Path path(input_.path, name);
  return reader(input_.at(*value, path), more...);
}

void Fields::read(std::string_view name, std::string& into, Need need) {
  keep(read_by(name, need, read_text), into);
}

void Fields::read(std::string_view name, bool& into, Need need) {
  keep(read_by(name, need, read_flag), into);
}

void Fields::read(std::string_view name, base::Time& into, Need need) {
  keep(read_by(name, need, read_time), into);
}

void Fields::read(std::string_view name, double& into, Need need) {
  keep(read_by(name, need, read_real), into);
}

void Fields::read(std::string_view name, int& into, Need need) {
  keep(read_by(name, need, read_integer, kLeast<int>, kMost<int>), into);
}

void Fields::read(std::string_view name, int64_t& into, Need need) {
  keep(read_by(name, need, read_integer, kLeast<int64_t>, kMost<int64_t>), into);
}

void Fields::read(std::string_view name, std::chrono::milliseconds& into, Need need) {
  const auto count = read_by(name, need, read_integer, kLeast<int64_t>, kMost<int64_t>);
  if (count) into = std::chrono::milliseconds(*count);
}

void Fields::read_milli(std::string_view name, int64_t& into, Need need) {
  keep(read_by(name, need, record::read_milli, kLeast<int64_t>, kMost<int64_t>), into);
}

void Fields::read_milli(std::string_view name, int& into, Need need) {
  keep(read_by(name, need, record::read_milli, kLeast<int>, kMost<int>), into);
}

void Fields::read_base64(std::string_view name, std::string& into) {
  keep(read_by(name, Need::kOptional, record::read_base64), into);
}

void Fields::read(std::string_view name, std::vector<std::string>& into, Need need) {
  const Value* value = find(name, need);
  if (value == nullptr) return;
  const Path path(input_.path, name);
  texts_type()->read(input_.at(*value, path), &into);
}

void Fields::read(std::string_view name, std::vector<int>& into) {
  const Value* value = find(name, Need::kOptional);
  if (value == nullptr) return;
  const Path path(input_.path, name);
  ints_type()->read(input_.at(*value, path), &into);
}

void Fields::read(std::string_view name, std::map<std::string, std::string>& into) {
  const Value* value = find(name, Need::kOptional);
  if (value == nullptr) return;
  const Path path(input_.path, name);
  pairs_type()->read(input_.at(*value, path), &into);
}

void Fields::read(std::string_view name, std::map<std::string, std::optional<std::string>>& into,
                  Need need) {
  const Value* value = find(name, need);
  if (value == nullptr) return;
  const Path path(input_.path, name);
  const Input input = input_.at(*value, path);
  if (!value->is_object()) return input.expected("an object of texts");
  into.clear();
  for (const Value& entry : *value) {
    if (input.has_all_faults()) return;
    const Path entry_path(path, entry.name());
    if (entry.is_null()) {
      into[std::string(entry.name())].reset();
    } else if (auto bytes = read_text(input.at(entry, entry_path))) {
      into[std::string(entry.name())] = *std::move(bytes);
    }
  }
}

void Fields::record(const Table& table, void* into) {
  is_all_known_ = true;
  table.read(input_, into);
}

void Fields::record(std::string_view name, const Table& table, void* into, Need need) {
  const Value* value = find(name, need);
  if (value == nullptr) return;
  const Path path(input_.path, name);
  table.read(input_.at(*value, path), into);
}

void Fields::object(std::string_view name, const Read& read, Need need) {
  const Value* value = find(name, need);
  if (value == nullptr) return;
  const Path path(input_.path, name);
  const Input input = input_.at(*value, path);
  if (!value->is_object()) return input.expected("an object");
  Fields fields(input);
  read(fields);
  fields.refuse_unknown();
}

void Fields::each_value(std::string_view name, const std::function<void(const Input&)>& read,
                        Need need) {
  const Value* value = find(name, need);
  if (value == nullptr) return;
  const Path path(input_.path, name);
  const Input list = input_.at(*value, path);
  if (!value->is_list()) return list.expected("a list of objects");
  size_t index = 0;
  for (const Value& element : *value) {
    if (list.has_all_faults()) return;
    const Path element_path(path, index++);
    read(list.at(element, element_path));
  }
}

void Fields::each(std::string_view name, const Read& read, Need need) {
  each_value(
      name,
      [&](const Input& element) {
        if (!element.value.is_object()) return element.expected("an object");
        Fields fields(element);
        read(fields);
        fields.refuse_unknown();
      },
      need);
}

void Fields::entries(std::string_view name, const ReadEntry& read) {
  const Value* value = find(name, Need::kOptional);
  if (value == nullptr) return;
  const Path path(input_.path, name);
  if (!value->is_object()) return input_.at(*value, path).expected("an object of objects");
  for (const Value& entry : *value) {
    if (input_.has_all_faults()) return;
    const std::string key(entry.name());
    const Path entry_path(path, key);
    const Input input = input_.at(entry, entry_path);
    if (entry.is_null()) {
      read(key, nullptr);
    } else if (!entry.is_object()) {
      input.expected("an object");
    } else {
      Fields fields(input);
      read(key, &fields);
      fields.refuse_unknown();
    }
  }
}

bool Fields::is_null(std::string_view name) {
  known_.emplace_back(name);
  const Value* found = input_.value.find(name);
  return found != nullptr && found->is_null();
}

bool Fields::has(std::string_view name) {
  return find(name, Need::kOptional) != nullptr;
}

void Fields::fault(std::string_view name, std::string what) {
  const Path path(input_.path, name);
  input_.at(input_.value, path).note(std::move(what));
}

void Fields::refuse_unknown() {
  if (is_all_known_) return;
  for (const Value& member : input_.value) {
    const std::string_view name = member.name();
    if (input_.has_all_faults()) return;
    if (std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
    fault(name, "is not a field" + did_you_mean(name, known_));
  }
}

const Value* Fields::find(std::string_view name, Need need) {
  known_.emplace_back(name);
  const Value* found = input_.value.find(name);
  if (found != nullptr && !found->is_null()) return found;
  if (need == Need::kRequired) fault(name, "is missing");
  return nullptr;
}

std::optional<size_t> Fields::choice(std::string_view name, const std::vector<std::string>& names,
                                     Need need) {
  return read_by(name, need, read_choice, names);
}

Result<void> read_document(const Value& document, std::string_view noun, const Fields::Read& read,
                           Unknown unknown, Form form) {
  std::vector<Fault> faults;
  const Path root;
  const Input input{document, root, faults, form};
  if (!document.is_object()) {
    input.expected("an object");
    return Error{.code = ErrorCode::kInvalid,
                 .what = "the " + std::string(noun) + " " + faults.front().what};
  }
  Fields fields(input);
  read(fields);
  if (unknown == Unknown::kRefused) fields.refuse_unknown();
  if (faults.empty()) return {};
  return faulty_document(noun, std::move(faults));
}

Error faulty_document(std::string_view noun, std::vector<Fault> faults) {
  return {.code = ErrorCode::kInvalid,
          .what = "the " + std::string(noun) + " has " + std::to_string(faults.size()) +
                  (faults.size() == 1 ? " fault" : " faults"),
          .advice = {},
          .faults = std::move(faults)};
}

Result<void> read_document(std::string_view text, std::string_view noun, const Fields::Read& read,
                           Unknown unknown) {
  MUSTER_TRY(const ValueTree document, parse_json(text, noun));
  return read_document(document.root(), noun, read, unknown);
}

}  // namespace muster::record
