#include "job/array.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/text.h"
#include "base/units.h"
#include "job/spec_table.h"
#include "job/validate.h"
#include "record/field.h"

namespace muster::job {

using base::Error;
using base::ErrorCode;
using base::number_of;
using base::Result;

namespace {

// All texts of the lines together: they stay in memory until the array is deleted.
constexpr size_t kMostLineBytes = 8 << 20;
constexpr size_t kLongestLine = 64 << 10;

Error wrong_indexes(const std::string& what) {
  return {.code = ErrorCode::kInvalid, .what = what};
}

/// A number of more digits than an index may have counts as the first that is too large.
std::optional<int> typed_index(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789";
  if (text.empty() || text.find_first_not_of(kDigits) != std::string_view::npos) {
    return std::nullopt;
  }
  const auto index = number_of<int>(text);
  return index ? std::min(*index, kLargestIndex + 1) : kLargestIndex + 1;
}

struct IndexRange {
  int first = 0;
  int last = 0;
  int step = 1;
};

/// "7", "0-99" or "0-20:5".
std::optional<IndexRange> range_of(std::string_view text) {
  IndexRange range;
  const size_t colon = text.find(':');
  const std::string_view ends = text.substr(0, colon);
  const size_t dash = ends.find('-');
  const auto first = typed_index(ends.substr(0, dash));
  if (!first) return std::nullopt;
  range.first = range.last = *first;
  if (dash != std::string_view::npos) {
    const auto last = typed_index(ends.substr(dash + 1));
    if (!last) return std::nullopt;
    range.last = *last;
  }
  if (colon != std::string_view::npos) {
    const auto step = number_of<int>(text.substr(colon + 1));
    if (!step || dash == std::string_view::npos) return std::nullopt;
    range.step = *step;
  }
  return range;
}

}  // namespace

std::vector<std::string> parts_of_json(std::string_view json) {
  std::vector<std::string> parts;
  std::string part;
  int depth = 0;
  bool is_text = false;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    const bool is_blank = c == ' ' || c == '\t' || c == '\r' || c == '\n';
    if (is_text) {
      part += c;
      if (c == '\\' && i + 1 < json.size()) part += json[++i];
      is_text = c != '"';
      continue;
    }
    const bool opens = c == '[' || c == '{';
    const bool closes = c == ']' || c == '}';
    if (closes) --depth;
    const bool is_outermost = depth == 0;
    if (opens) ++depth;
    if (opens && is_outermost) continue;
    if ((closes && is_outermost) || (c == ',' && depth == 1)) {
      if (!part.empty()) parts.push_back(std::move(part));
      part.clear();
    } else if (!is_blank) {
      part += c;
      is_text = c == '"';
    }
  }
  return parts;
}

Result<std::vector<int>> indexes_of(std::string_view text) {
  if (text.empty()) return wrong_indexes("is empty; give indexes, such as 7, 0-99 or 0-20:5");
  std::vector<int> indexes;
  for (const std::string& part : base::split(text, ',')) {
    const auto range = range_of(part);
    if (!range) {
      return wrong_indexes("'" + part + "' is not an index or a range, such as 7, 0-99 or 0-20:5");
    }
    if (range->step < 1) return wrong_indexes("the step of '" + part + "' is less than 1");
    if (range->last < range->first) return wrong_indexes("the range '" + part + "' is empty");
    if (range->last > kLargestIndex) {
      return wrong_indexes("the largest index is " + std::to_string(kLargestIndex));
    }
    if (!indexes.empty() && range->first <= indexes.back()) {
      return wrong_indexes("'" + part + "' does not follow " + std::to_string(indexes.back()) +
                           ": list every index once, in ascending order");
    }
    const int64_t count = (int64_t{range->last} - range->first) / range->step + 1;
    if (static_cast<int64_t>(indexes.size()) + count > kMostMembers) {
      return wrong_indexes(base::in_quotes(text) + " has more than " +
                           std::to_string(kMostMembers) + " members");
    }
    for (int i = 0; i < count; ++i) indexes.push_back(range->first + i * range->step);
  }
  return indexes;
}

Result<std::vector<int>> indexes_of(const ArraySpec& array) {
  if (!array.indexes.empty()) return indexes_of(array.indexes);
  if (array.lines.size() > static_cast<size_t>(kMostMembers)) {
    return wrong_indexes("has " + std::to_string(array.lines.size()) + " lines; at most " +
                         std::to_string(kMostMembers) + " are allowed");
  }
  std::vector<int> indexes(array.lines.size());
  for (size_t i = 0; i < indexes.size(); ++i) indexes[i] = static_cast<int>(i);
  return indexes;
}

Result<ArraySpec> array_of(std::string_view text) {
  ArraySpec array;
  const size_t percent = text.find('%');
  array.indexes = text.substr(0, percent);
  if (percent != std::string_view::npos) {
    const auto most = number_of<int>(text.substr(percent + 1));
    if (!most || *most < 1) {
      return wrong_indexes("'" + std::string(text.substr(percent + 1)) +
                           "' is not a number of members that may run at the same time");
    }
    array.max_running = *most;
  }
  MUSTER_CHECK(indexes_of(array.indexes));
  return array;
}

namespace {

std::string item_variable(std::string_view field) {
  std::string name = "MUSTER_ITEM_";
  for (const char c : field) {
    const bool is_lower = c >= 'a' && c <= 'z';
    const bool is_plain = (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    name += is_lower ? static_cast<char>(c - 'a' + 'A') : is_plain ? c : '_';
  }
  return name;
}

/// A field of a line that is a JSON object. `value`: as it is written.
struct Item {
  std::string field;
  std::string value;
};

/// No items, if the line is no JSON object.
std::vector<Item> items_of(const std::string& line) {
  std::vector<Item> items;
  if (!line.starts_with('{') || !base::parse_json(line).is_object()) return items;
  for (const std::string& member : parts_of_json(line)) {
    size_t end = 1;  // of the key, which is in quotes
    while (end < member.size() && member[end] != '"') end += member[end] == '\\' ? 2 : 1;
    items.push_back({.field = base::parse_json(member.substr(0, end + 1)).get<std::string>(),
                     .value = member.substr(end + 2)});
  }
  return items;
}

/// Empty, if every field of the line has a variable of its own.
std::string fault_of_items(const std::string& line) {
  std::map<std::string, std::string> fields;
  for (const Item& item : items_of(line)) {
    const std::string variable = item_variable(item.field);
    const auto [first, is_new] = fields.emplace(variable, item.field);
    if (is_new) continue;
    return "its fields " + base::in_quotes(first->second) + " and " + base::in_quotes(item.field) +
           " both set " + base::shortened(variable) + "; rename one";
  }
  return "";
}

void check_lines(const ArraySpec& array, size_t members, Checker& check) {
  if (array.lines.empty()) return;
  check.require(array.lines.size() == members, "array.lines",
                "has " + std::to_string(array.lines.size()) + " lines for " +
                    std::to_string(members) + " indexes; give one line for each");
  size_t bytes = 0;
  // Without a fault, there are at most kMostMembers lines.
  const size_t count = std::min(array.lines.size(), static_cast<size_t>(kMostMembers));
  for (size_t i = 0; i < count && !check.has_all_faults(); ++i) {
    const std::string& line = array.lines[i];
    bytes += line.size();
    const std::string field = "array.lines[" + std::to_string(i) + "]";
    check.require(!has_nul(line), field, "contains a NUL byte");
    check.require(line.size() <= kLongestLine, field,
                  "has " + std::to_string(line.size()) + " bytes; at most " +
                      std::to_string(kLongestLine) + " are allowed");
    const std::string fault = fault_of_items(line);
    check.require(fault.empty(), field, fault);
  }
  check.require(bytes <= kMostLineBytes, "array.lines",
                "have " + std::to_string(bytes) + " bytes together; at most " +
                    std::to_string(kMostLineBytes) + " are allowed: put the rest in files");
}

bool is_variable_of_members(std::string_view name) {
  return name.starts_with("MUSTER_ARRAY_") || name.starts_with("MUSTER_ITEM_");
}

}  // namespace

void check_array(const JobSpec& spec, Checker& check) {
  const ArraySpec& array = spec.array;
  if (array.is_none()) {
    check.require(array.max_running == 0 && !array.max_failures, "array",
                  "has no members; give indexes, such as 0-99, or lines");
    return;
  }
  const auto indexes = indexes_of(array);
  if (!indexes) return check.require(false, "array.indexes", indexes.error().what);
  check_lines(array, indexes->size(), check);
  check.require(array.max_running >= 0, "array.max_running", "is less than 0");
  check.require(!array.max_failures || *array.max_failures >= 0, "array.max_failures",
                "is less than 0");
  const std::string last = member_name(spec.name, indexes->back());
  check.require(!is_job_name(spec.name) || is_job_name(last), "name",
                "is too long: the name of the last member, '" + last + "', has " +
                    std::to_string(last.size()) + " characters");
  check.require(!spec.terminal, "terminal", "cannot be used with an array: leave it out");
  for (const auto& [name, value] : spec.environment) {
    if (!is_variable_of_members(name)) continue;
    check.require(false, "environment." + name,
                  "differs between the members of an array, and is set by Muster; leave it out");
  }
}

std::string member_name(std::string_view array, int index) {
  return std::string(array) + "-" + std::to_string(index);
}

std::string member_title(std::string_view array, int index) {
  return std::string(array) + "[" + std::to_string(index) + "]";
}

std::optional<MemberName> member_of(std::string_view name) {
  std::string_view digits;
  size_t end = name.rfind('-');
  if (name.ends_with(']')) {
    end = name.rfind('[');
    if (end == std::string_view::npos) return std::nullopt;
    digits = name.substr(end + 1, name.size() - end - 2);
  } else if (end != std::string_view::npos) {
    digits = name.substr(end + 1);
  }
  if (end == 0 || digits.empty() || (digits.size() > 1 && digits.front() == '0')) {
    return std::nullopt;
  }
  if (digits.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  const auto index = number_of<int>(digits);
  if (!index || *index > kLargestIndex) return std::nullopt;
  return MemberName{.array = std::string(name.substr(0, end)), .index = *index};
}

namespace {

void set_line(const std::string& line, std::map<std::string, std::string>& environment) {
  environment["MUSTER_ARRAY_LINE"] = line;
  for (const Item& item : items_of(line)) {
    std::string text = item.value == "null" ? "" : item.value;
    if (text.starts_with('"')) text = base::parse_json(text).get<std::string>();
    if (!has_nul(text)) environment[item_variable(item.field)] = std::move(text);
  }
}

}  // namespace

JobSpec member_spec(const JobSpec& spec, const std::vector<int>& indexes, size_t position) {
  const std::vector<std::string>& lines = spec.array.lines;
  return member_spec(spec, indexes, position, position < lines.size() ? &lines[position] : nullptr);
}

JobSpec member_spec(const JobSpec& spec, const std::vector<int>& indexes, size_t position,
                    const std::string* line) {
  JobSpec member = spec;
  member.name = member_name(spec.name, indexes[position]);
  member.array = {};
  member.held = false;
  for (Dependency& dependency : member.after) {
    if (!dependency.by_member) continue;
    dependency.job = member_name(dependency.job, indexes[position]);
    dependency.by_member = false;
  }
  member.environment["MUSTER_ARRAY_INDEX"] = std::to_string(indexes[position]);
  member.environment["MUSTER_ARRAY_COUNT"] = std::to_string(indexes.size());
  member.environment["MUSTER_ARRAY_MIN"] = std::to_string(indexes.front());
  member.environment["MUSTER_ARRAY_MAX"] = std::to_string(indexes.back());
  if (line != nullptr) set_line(*line, member.environment);
  return member;
}

Phase phase_of_array(const MemberCounts& counts) {
  if (counts.ended() < counts.all()) {
    const bool has_begun = counts.starting + counts.running + counts.ended() > 0;
    return has_begun ? Phase::kRunning : Phase::kQueued;
  }
  if (counts.failed > 0) return Phase::kFailed;
  return counts.stopped > 0 ? Phase::kStopped : Phase::kSucceeded;
}

// --- tables

using record::field;
using record::Need;
using record::Sent;
using record::Table;

const Table& table_of(const ArrayRecord*) {
  static const Table table = record::table<ArrayRecord>(
      "ArrayRecord",
      {field<&ArrayRecord::id>("id"), field<&ArrayRecord::spec>("spec"),
       field<&ArrayRecord::owner>("owner"), field<&ArrayRecord::submitted>("submitted"),
       field<&ArrayRecord::idempotency_key>("idempotency_key")});
  return table;
}

const Table& table_of(const ArrayState*) {
  static const Table table = record::table<ArrayState>(
      "ArrayState",
      {field<&ArrayState::stop_requested>("stop_requested"),
       field<&ArrayState::too_many_failures>("too_many_failures"),
       field<&ArrayState::suspended>("suspended"), field<&ArrayState::removing>("removing"),
       field<&ArrayState::end_reported>("end_told"), field<&ArrayState::max_running>("max_running"),
       field<&ArrayState::max_failures>("max_failures"), field<&ArrayState::results>("results"),
       field<&ArrayState::exit_codes>("exit_codes"), field<&ArrayState::last>("last"),
       field<&ArrayState::awaited>("awaited")});
  return table;
}

const Table& table_of(const MemberCounts*) {
  constexpr record::Notes kCount{.sent = Sent::kAlways, .least = 0};
  static const Table table =
      record::table<MemberCounts>("ArrayCounts",
                                  {field<&MemberCounts::queued>("queued", kCount),
                                   field<&MemberCounts::starting>("starting", kCount),
                                   field<&MemberCounts::running>("running", kCount),
                                   field<&MemberCounts::succeeded>("succeeded", kCount),
                                   field<&MemberCounts::failed>("failed", kCount),
                                   field<&MemberCounts::stopped>("stopped", kCount)},
                                  "The number of members in each phase.")
          .as_answer();
  return table;
}

const Table& table_of(const MemberEnd*) {
  static const Table table =
      record::table<MemberEnd>(
          "MemberEnd",
          {field<&MemberEnd::index>("index", {.need = Need::kRequired}),
           field<&MemberEnd::job>("job", {.help = "The id of its job. Absent: the job is no longer "
                                                  "kept."}),
           field<&MemberEnd::phase>("phase", {.need = Need::kRequired}),
           field<&MemberEnd::exit_code>("exit_code"),
           field<&MemberEnd::reason>("reason", {.help = "A sentence that explains the end."})},
          "A member of an array that failed or was stopped.")
          .as_answer();
  return table;
}

const Table& table_of(const Array*) {
  static const Table table =
      record::table<Array>(
          "Array",
          {field<&Array::id>("id", {.help = "Never reused.", .need = Need::kRequired}),
           field<&Array::spec>("spec", {.help = "The spec of all members. Its lines are left out.",
                                        .need = Need::kRequired}),
           field<&Array::owner>("owner",
                                {.help = "The user who submitted it.", .sent = Sent::kAlways}),
           field<&Array::submitted>("submitted", {.need = Need::kRequired}),
           field<&Array::ended>("ended", {.help = "When the last member ended."}),
           field<&Array::phase>("phase",
                                {.help = "`Queued` until a member starts, `Running` until all have "
                                         "ended, then `Succeeded` if all succeeded, `Failed` if "
                                         "at least one failed, else `Stopped`.",
                                 .need = Need::kRequired}),
           field<&Array::counts>("counts", {.need = Need::kRequired}),
           field<&Array::percent>("percent", {.help = "The share of the members that have ended.",
                                              .sent = Sent::kAlways,
                                              .least = 0}),
           field<&Array::stop_requested>("stop_requested"),
           field<&Array::too_many_failures>(
               "too_many_failures", {.help = "It was stopped because more members failed than "
                                             "`max_failures` allows."}),
           field<&Array::suspended>("suspended"),
           field<&Array::failed>("failed", {.help = "The first members that failed or were stopped "
                                                    "alone, in the order of their indexes."})},
          "Many jobs from one spec.")
          .as_answer();
  return table;
}

}  // namespace muster::job
