#include "record/table.h"

#include <algorithm>

#include "base/text.h"
#include "record/field.h"
#include "record/fields.h"

namespace muster::record {

using base::Error;
using base::ErrorCode;
using base::Fault;

namespace {

/// The section of a key that was written outside it: "resources" for "gpus".
std::string section_of(const Table& table, std::string_view key) {
  for (const Row& row : table.rows()) {
    const Table* inner = row.notes.gives_inner_flags ? row.type->table() : nullptr;
    if (inner != nullptr && inner->find(key, Form::kHuman) != nullptr) return row.name;
  }
  return "";
}

void collect_places(const Table& table, const std::string& prefix, bool gives_flags,
                    std::vector<Place>& places) {
  for (const Row& row : table.rows()) {
    const bool has_flag = gives_flags && row.notes.flag.name != nullptr;
    places.push_back({.path = prefix + row.name, .row = &row, .has_flag = has_flag});
    if (const Table* inner = row.type->table()) {
      const bool inner_flags = gives_flags && row.notes.gives_inner_flags;
      collect_places(*inner, prefix + row.name + ".", inner_flags, places);
    }
  }
}

}  // namespace

Table::Table(std::string name, std::vector<Row> rows, const void* defaults, const char* help)
    : name_(std::move(name)), rows_(std::move(rows)), defaults_(defaults), help_(help) {}

const Row* Table::find(std::string_view name, Form form) const {
  const auto found = std::find_if(rows_.begin(), rows_.end(),
                                  [&](const Row& row) { return row.name_in(form) == name; });
  return found == rows_.end() ? nullptr : &*found;
}

std::vector<std::string> Table::names(Form form) const {
  std::vector<std::string> names;
  for (const Row& row : rows_) {
    if (row.is_in(form)) names.push_back(row.name_in(form));
  }
  return names;
}

bool Table::is_default(const Row& row, const void* record) const {
  return row.type->is_same(row.member_of(record), row.member_of(defaults_));
}

/// An empty optional is omitted, unless null differs from absence: on the wire according to its
/// row, in the store if the default is not empty.
bool Table::is_left_out(const Row& row, const void* value, Form form) const {
  if (!row.type->is_absent(value)) return false;
  if (form == Form::kStore) return row.type->is_absent(row.member_of(defaults_));
  return row.notes.null == nullptr || row.notes.sent != Sent::kAlways;
}

void Table::write(JsonWriter& json, const void* record, Form form) const {
  json.open('{');
  for (const Row& row : rows_) {
    const void* value = row.member_of(record);
    const bool is_sent_always = form == Form::kWire && row.notes.sent == Sent::kAlways;
    // First, because nearly all values are defaults.
    if (!is_sent_always && row.notes.need == Need::kOptional && is_default(row, record)) continue;
    if (!row.is_in(form) || is_left_out(row, value, form)) continue;
    json.key(row.name_in(form));
    row.type->write(json, value, form);
  }
  json.close('}');
}

void Table::read(const Input& input, void* record) const {
  if (!input.value.is_object()) {
    return input.expected(input.form == Form::kHuman ? "a map" : "an object");
  }
  const std::vector<const Value*> given = given_in(input);
  for (size_t i = 0; i < rows_.size(); ++i) {
    const Row& row = rows_[i];
    if (!row.is_in(input.form)) continue;
    const Path path(input.path, row.name_in(input.form));
    const bool is_unset = given[i] == nullptr || (input.form == Form::kWire &&
                                                  given[i]->is_null() && row.notes.null == nullptr);
    if (!is_unset) {
      void* member = row.member_of(record);
      const bool is_list = row.type->element() != nullptr;
      read_short(input.at(*given[i], path).with(row.notes), is_list ? nullptr : row.notes.shorthand,
                 *row.type, member);
      if (row.notes.normalise != nullptr) row.notes.normalise(member);
    } else if (row.notes.need == Need::kRequired ||
               (row.notes.need == Need::kOnWire && input.form != Form::kHuman)) {
      input.at(input.value, path).note("is missing");
    }
  }
  const bool takes_more = unknown_ == Unknown::kIgnored && input.form == Form::kWire;
  if (given.size() > rows_.size() && !takes_more) report_unknown(input);
  if (complete_ != nullptr) complete_(input, record);
}

/// The given value of each row, followed by a nullptr for each member without a row. Documents
/// usually have the order of the rows, so each search begins after the row found last.
std::vector<const Value*> Table::given_in(const Input& input) const {
  std::vector<const Value*> given(rows_.size(), nullptr);
  size_t next = 0;
  for (const Value& member : input.value) {
    size_t tried = 0;
    while (tried < rows_.size() && rows_[next].name_in(input.form) != member.name()) {
      next = next + 1 < rows_.size() ? next + 1 : 0;
      ++tried;
    }
    if (tried < rows_.size() && rows_[next].is_in(input.form)) {
      given[next] = &member;
    } else {
      given.push_back(nullptr);
    }
  }
  return given;
}

/// The comparison of a name with all known names is slow, and a request of 4 MiB has room for
/// hundreds of thousands of unknown fields, so the search for unknown fields stops when the
/// document has all the faults that are reported.
void Table::report_unknown(const Input& input) const {
  const std::vector<std::string> known = names(input.form);
  for (const Value& member : input.value) {
    if (input.has_all_faults()) return;
    const Row* row = find(member.name(), input.form);
    if (row == nullptr || !row->is_in(input.form)) report_unknown(input, member.name(), known);
  }
}

void Table::report_unknown(const Input& input, std::string_view key,
                           const std::vector<std::string>& known) const {
  const Path path(input.path, key);
  const Input unknown = input.at(input.value, path);
  if (input.form != Form::kHuman) {
    // A user of job files may write "grace" for "grace_ms".
    const Row* without_unit = find(key, Form::kHuman);
    const bool is_there = without_unit != nullptr && without_unit->is_in(input.form);
    return unknown.note("is not a field" +
                        (is_there ? "; did you mean '" + without_unit->wire_name + "'?"
                                  : did_you_mean(key, known)));
  }
  const std::string section = section_of(*this, key);
  unknown.note(section.empty() ? "unknown key" + did_you_mean(key, known)
                               : "unknown key here; write it under '" + section + "'");
}

base::Result<void> read_text_into(std::string_view text, std::string_view noun, const Table& table,
                                  void* record) {
  return read_document(text, noun, [&](Fields& fields) { fields.record(table, record); });
}

namespace {

struct StepOfPath {
  std::string_view name;
  std::string_view index;  ///< "[2]", if the part has one
};

/// Takes the first part off a path: "after[2].job".
StepOfPath take_step(std::string_view& path) {
  const size_t end = std::min(path.find('.'), path.size());
  const std::string_view part = path.substr(0, end);
  path.remove_prefix(std::min(end + 1, path.size()));
  const size_t bracket = std::min(part.find('['), part.size());
  return {.name = part.substr(0, bracket), .index = part.substr(bracket)};
}

const Row* row_in_either_form(const Table& table, std::string_view name) {
  const Row* const row = table.find(name, Form::kWire);
  return row != nullptr ? row : table.find(name, Form::kHuman);
}

/// The table of the part after `row`; nullptr: no further part has a row.
const Table* table_behind(const Row& row, const StepOfPath& step) {
  if (step.index.empty()) return row.type->table();
  return row.type->element() == nullptr ? nullptr : row.type->element()->table();
}

/// path_in(), and for an unknown name the nearest known one if `corrects`.
std::string renamed(Form form, const Table& table, std::string_view path, bool corrects) {
  std::string out;
  const Table* within = &table;
  while (within != nullptr && !path.empty()) {
    const std::string_view before = path;
    const StepOfPath step = take_step(path);
    const Row* row = row_in_either_form(*within, step.name);
    if (row == nullptr && corrects) {
      const std::string near = base::nearest(step.name, within->names(Form::kWire));
      row = within->find(near, Form::kWire);
    }
    if (!out.empty()) out += '.';
    if (row == nullptr) return out.append(before);
    out.append(row->name_in(form)).append(step.index);
    const Table* const values = row->type->table_of_values();
    if (values != nullptr && !path.empty()) {
      const StepOfPath key = take_step(path);
      out.append(".").append(key.name).append(key.index);
    }
    within = values != nullptr ? values : table_behind(*row, step);
  }
  if (path.empty()) return out;
  return out.append(".").append(path);
}

/// An unread element makes the whole list unread.
std::string_view list_around(std::string_view field) {
  return field.substr(0, field.find('['));
}

bool follows_from(std::string_view field, const std::vector<Fault>& unread) {
  return std::any_of(unread.begin(), unread.end(), [&](const Fault& fault) {
    return is_within(field, list_around(fault.field)) || is_within(fault.field, field);
  });
}

}  // namespace

std::string path_in(Form form, const Table& table, std::string_view path) {
  return renamed(form, table, path, false);
}

Error with_names_in(Form form, const Table& table, Error error) {
  for (Fault& fault : error.faults) fault.field = path_in(form, table, fault.field);
  return error;
}

void add_validation(std::vector<Fault>& faults, const Table& table,
                    const std::function<std::vector<Fault>(std::vector<Fault>& unread)>& validate) {
  // The remaining elements of lists were skipped: their absence is no fault of the user.
  if (faults.size() >= kMostFaults) return;
  std::vector<Fault> unread;
  for (const Fault& fault : faults) {
    unread.push_back({.field = renamed(Form::kHuman, table, fault.field, true)});
  }
  std::vector<Fault> found = validate(unread);
  for (Fault& fault : found) {
    if (faults.size() >= kMostFaults) return;
    if (follows_from(path_in(Form::kHuman, table, fault.field), unread)) continue;
    fault.field = path_in(Form::kWire, table, fault.field);
    faults.push_back(std::move(fault));
  }
}

base::Result<void> read_text_into(
    std::string_view text, std::string_view noun, const Table& table, void* record,
    const std::function<std::vector<Fault>(std::vector<Fault>& unread)>& validate) {
  auto read = read_text_into(text, noun, table, record);
  if (read || read.error().faults.empty()) return read;
  std::vector<Fault> faults = std::move(read).error().faults;
  add_validation(faults, table, validate);
  return faulty_document(noun, std::move(faults));
}

base::Result<void> read_list_into(std::string_view text, std::string_view name, const Table& table,
                                  const std::function<void*()>& add) {
  return read_document(text, "list of " + std::string(name), [&](Fields& fields) {
    const auto read = [&](const Input& element) { table.read(element, add()); };
    fields.each_value(name, read, Need::kRequired);
  });
}

namespace {

/// "; did you mean 'scheduling.retries'?", for 'retries' and for typing errors.
std::string hint_at_key(std::string_view key, const std::vector<std::string>& known) {
  for (const std::string& path : known) {
    const size_t dot = path.rfind('.');
    if (dot != std::string::npos && std::string_view(path).substr(dot + 1) == key) {
      return "; did you mean '" + path + "'?";
    }
  }
  return did_you_mean(key, known);
}

}  // namespace

void assign(const Table& table, void* record, std::string_view key, const Value& value,
            std::vector<Fault>& faults) {
  const Path path(key);
  const Table* within = &table;
  void* object = record;
  std::string_view rest = key;
  while (true) {
    const Row* whole = within->find(rest, Form::kHuman);
    const size_t dot = whole != nullptr ? std::string_view::npos : rest.find('.');
    const std::string_view name = rest.substr(0, dot);
    const Row* row = whole != nullptr ? whole : within->find(name, Form::kHuman);
    const Value none{};
    if (row == nullptr) {
      std::vector<std::string> known;
      for (const Place& place : places_of(table)) known.push_back(place.path);
      return Input{none, path, faults, Form::kHuman}.note("is an unknown key" +
                                                          hint_at_key(key, known));
    }
    void* member = row->member_of(object);
    const Input input{value, path, faults, Form::kHuman};
    if (dot == std::string_view::npos) {
      const bool is_list = row->type->element() != nullptr;
      read_short(input.with(row->notes), is_list ? nullptr : row->notes.shorthand, *row->type,
                 member);
      if (row->notes.normalise != nullptr) row->notes.normalise(member);
      return;
    }
    rest.remove_prefix(dot + 1);
    if (row->type->is_pairs()) return row->type->set_pair(std::string(rest), input, member);
    within = row->type->table();
    if (within == nullptr) {
      return input.note("is an unknown key; '" + std::string(name) + "' has no keys of its own");
    }
    object = member;
  }
}

std::vector<Place> places_of(const Table& table) {
  std::vector<Place> places;
  collect_places(table, "", true, places);
  return places;
}

}  // namespace muster::record
