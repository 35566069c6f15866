#include "cli/common/output.h"

#include <unistd.h>
#include <yaml-cpp/emitter.h>
#include <yaml-cpp/emittermanip.h>

#include <algorithm>
#include <array>
#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json_text.h"
#include "base/text.h"
#include "cli/common/terminal.h"
#include "http/client.h"
#include "words/sentence.h"

namespace muster::cli {

namespace {

using nlohmann::ordered_json;

/// Whether YAML reads the unquoted string back as the same string. yaml-cpp's emitter writes "true"
/// and "123" without quotes, and YAML reads them as a boolean and a number.
bool is_plain_word(const std::string& text) {
  constexpr std::array<std::string_view, 10> kMeaningful{"true", "false", "yes", "no", "on",
                                                         "off",  "null",  "y",   "n",  "nan"};
  std::string lower = text;
  for (char& letter : lower) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  const bool starts_well =
      !lower.empty() && ((lower[0] >= 'a' && lower[0] <= 'z') || lower[0] == '/');
  constexpr std::string_view kSafe = "abcdefghijklmnopqrstuvwxyz0123456789_-./+=@";
  return starts_well && lower.find_first_not_of(kSafe) == std::string::npos &&
         std::find(kMeaningful.begin(), kMeaningful.end(), lower) == kMeaningful.end();
}

void emit_string(YAML::Emitter& out, const std::string& text) {
  if (!is_plain_word(text)) out << YAML::DoubleQuoted;
  out << text;
}

void emit(YAML::Emitter& out, const ordered_json& value) {
  // In block style, an empty collection would produce no output.
  if (value.is_structured() && value.empty()) out << YAML::Flow;
  if (value.is_object()) {
    out << YAML::BeginMap;
    for (const auto& [key, item] : value.items()) {
      out << YAML::Key;
      emit_string(out, key);
      out << YAML::Value;
      emit(out, item);
    }
    out << YAML::EndMap;
  } else if (value.is_array()) {
    out << YAML::BeginSeq;
    for (const ordered_json& item : value) emit(out, item);
    out << YAML::EndSeq;
  } else if (value.is_string()) {
    emit_string(out, value.get_ref<const std::string&>());
  } else if (value.is_null()) {
    out << YAML::Null;
  } else {
    out << base::json_text(value);  // JSON and YAML spell numbers, true and false alike
  }
}

}  // namespace

std::string json_to_yaml(std::string_view json) {
  const ordered_json value = base::parse_ordered_json(json);
  YAML::Emitter out;
  emit(out, value.is_discarded() ? ordered_json(std::string(json)) : value);
  return std::string(out.c_str()) + "\n";
}

namespace {

/// Replaces newlines and the control characters that a terminal interprets: ESC and the rest of C0,
/// and U+0080 to U+009F (C2 80 to C2 9F).
std::string on_one_line(std::string text) {
  bool may_begin_one = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto code = static_cast<unsigned char>(text[i]);
    const bool completes_one = may_begin_one && code >= 0x80 && code <= 0x9f;
    may_begin_one = code == 0xc2;
    if (completes_one) text.replace(--i, 2, " ");
    if (code < 0x20 || code == 0x7f) text[i] = ' ';
  }
  return text;
}

void append_cell(std::string& line, const std::string& cell, size_t width, bool right) {
  const std::string padding(width - std::min(width, display_width(cell)), ' ');
  line += right ? padding + cell : cell + padding;
}

}  // namespace

void Table::add(std::vector<std::string> row) {
  for (std::string& cell : row) cell = on_one_line(std::move(cell));
  row.resize(columns_.size());
  rows_.push_back(std::move(row));
}

std::string Table::to_string(std::string_view indent, size_t width) const {
  std::vector<std::vector<std::string>> lines(1);
  for (const Column& column : columns_) lines.front().push_back(column.title);
  lines.insert(lines.end(), rows_.begin(), rows_.end());

  std::vector<size_t> widths(columns_.size());
  for (const auto& line : lines) {
    for (size_t i = 0; i < line.size(); ++i)
      widths[i] = std::max(widths[i], display_width(line[i]));
  }

  constexpr std::string_view kGap = "  ";
  std::string text;
  for (const auto& cells : lines) {
    std::string line(indent);
    for (size_t i = 0; i < cells.size(); ++i) {
      if (i > 0) line += kGap;
      append_cell(line, cells[i], widths[i], columns_[i].right);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += (width == 0 ? line : cut_to_width(line, width)) + "\n";
  }
  return text;
}

namespace {

/// The code point at the beginning of `text`, which is removed. A byte that is not UTF-8 counts as
/// a character.
char32_t take_code_point(std::string_view& text) {
  const auto first = static_cast<unsigned char>(text.front());
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
  char32_t code = length == 1 ? first : first & (0xff >> (length + 1));
  size_t used = 1;
  while (used < length && used < text.size()) {
    const auto next = static_cast<unsigned char>(text[used]);
    if ((next & 0xc0) != 0x80) break;
    code = code << 6 | (next & 0x3f);
    ++used;
  }
  text.remove_prefix(used);
  return code;
}

/// Unicode's East Asian wide characters, and those that combine with the one before.
size_t width_of(char32_t code) {
  struct Range {
    char32_t first;
    char32_t last;
  };
  constexpr std::array<Range, 7> kCombining{{{0x300, 0x36f},
                                             {0x483, 0x489},
                                             {0x591, 0x5bd},
                                             {0x200b, 0x200f},
                                             {0x20d0, 0x20ff},
                                             {0xfe00, 0xfe0f},
                                             {0xfe20, 0xfe2f}}};
  constexpr Range kWide[] = {
      {0x1100, 0x115f},  {0x231a, 0x231b}, {0x2329, 0x232a}, {0x23e9, 0x23ec}, {0x23f0, 0x23f0},
      {0x23f3, 0x23f3},  {0x25fd, 0x25fe}, {0x2614, 0x2615}, {0x2648, 0x2653}, {0x267f, 0x267f},
      {0x2693, 0x2693},  {0x26a1, 0x26a1}, {0x26aa, 0x26ab}, {0x26bd, 0x26be}, {0x26c4, 0x26c5},
      {0x26ce, 0x26ce},  {0x26d4, 0x26d4}, {0x26ea, 0x26ea}, {0x26f2, 0x26f3}, {0x26f5, 0x26f5},
      {0x26fa, 0x26fa},  {0x26fd, 0x26fd}, {0x2705, 0x2705}, {0x270a, 0x270b}, {0x2728, 0x2728},
      {0x274c, 0x274c},  {0x274e, 0x274e}, {0x2753, 0x2755}, {0x2757, 0x2757}, {0x2795, 0x2797},
      {0x27b0, 0x27b0},  {0x27bf, 0x27bf}, {0x2b1b, 0x2b1c}, {0x2b50, 0x2b50}, {0x2b55, 0x2b55},
      {0x2e80, 0x303e},  {0x3041, 0x33ff}, {0x3400, 0x4dbf}, {0x4e00, 0xa4cf}, {0xa960, 0xa97f},
      {0xac00, 0xd7a3},  {0xf900, 0xfaff}, {0xfe30, 0xfe6f}, {0xff00, 0xff60}, {0x1f300, 0x1faff},
      {0x20000, 0x3fffd}};
  const auto is_in = [code](const Range& range) {
    return range.first <= code && code <= range.last;
  };
  if (std::any_of(kCombining.begin(), kCombining.end(), is_in)) return 0;
  return std::any_of(std::begin(kWide), std::end(kWide), is_in) ? 2 : 1;
}

}  // namespace

size_t display_width(std::string_view text) {
  size_t width = 0;
  while (!text.empty()) width += width_of(take_code_point(text));
  return width;
}

std::string cut_to_width(std::string_view text, size_t width) {
  if (display_width(text) <= width) return std::string(text);
  constexpr std::string_view kEllipsis = "...";
  const size_t room = width > kEllipsis.size() ? width - kEllipsis.size() : width;
  std::string_view rest = text;
  size_t used = 0;
  size_t end = 0;
  while (!rest.empty()) {
    used += width_of(take_code_point(rest));
    if (used > room) break;
    end = text.size() - rest.size();
  }
  return std::string(text.substr(0, end)) + std::string(room < width ? kEllipsis : "");
}

std::string fields(const std::vector<std::pair<std::string, std::string>>& entries) {
  Table table({{""}, {""}});
  for (const auto& [key, value] : entries) {
    if (!value.empty()) table.add({key, value});
  }
  const std::string text = table.to_string();
  return text.substr(text.find('\n') + 1);  // without the empty title line
}

using base::Error;
using base::ErrorCode;
using job::Phase;

int exit_code_of(const Error& error) {
  if (base::detail_of<http::RequestLeft>(error) != nullptr) return kExitInterrupted;
  switch (error.code) {
    case ErrorCode::kInvalid:
      return kExitUsage;
    case ErrorCode::kNotFound:
      return kExitNotFound;
    case ErrorCode::kConflict:
    case ErrorCode::kRefused:
    case ErrorCode::kExhausted:
      return kExitRefused;
    case ErrorCode::kUnavailable:
    case ErrorCode::kTimeout:
      return kExitUnreachable;
    case ErrorCode::kInternal:
      break;
  }
  return kExitFailed;
}

int exit_code_of(const job::Job& job) {
  if (job.phase == Phase::kSucceeded) return kExitDone;
  const int code = job.exit_code.value_or(kExitFailed);
  return code == 0 ? kExitFailed : code;
}

std::string error_text(const Error& error, const std::string& program) {
  return program + ": " + error.to_string() + "\n";
}

std::string failure_text(const job::Job& job, const std::string& program) {
  const std::string head = program + ": job '" + job.spec.name + "' ";
  if (job.phase == Phase::kStopped) return head + "was stopped\n";
  if (job.phase != Phase::kFailed) return "";
  if (!job.failure) return head + "failed" + words::after_colon(job.reason) + "\n";
  std::string text = head + "failed: " + words::sentence(job.failure->cause) + "\n";
  return text + evidence_text(*job.failure);
}

std::string evidence_text(const job::Failure& failure) {
  std::string text;
  if (!failure.last_lines.empty()) {
    // The lines of a failed rank may come from another task; the heading then names that task.
    text += failure.rank ? "  last lines:\n" : "  last lines of " + failure.task + ":\n";
    for (const std::string& line : failure.last_lines) text += "    " + line + "\n";
  }
  if (!failure.advice.empty()) text += "  " + failure.advice + "\n";
  return text;
}

Error usage_error(const std::vector<std::string>& path, std::vector<base::Fault> faults,
                  const std::string& program) {
  Error error{.code = ErrorCode::kInvalid};
  std::string command = program;
  for (const std::string& word : path) command += " " + word;
  error.advice = "see: " + command + " --help";
  if (faults.size() == 1) {
    const base::Fault& fault = faults.front();
    error.what = fault.field.empty() ? fault.what : base::fault_message(fault.field, fault.what);
    return error;
  }
  error.what = std::to_string(faults.size()) + " errors in the command line";
  error.faults = std::move(faults);
  return error;
}

int report_error(const base::Error& error, const std::string& program) {
  const std::string text = error_text(error, program);
  std::cerr << (terminal_of(STDERR_FILENO).is_terminal ? safe_lines(text) : text) << std::flush;
  return exit_code_of(error);
}

int run_and_report(const std::string& program,
                   const std::function<base::Result<int>()>& command_line) {
  try {
    const base::Result<int> code = command_line();
    return code ? *code : report_error(code.error(), program);
  } catch (const std::exception& error) {
    // Out of memory, or a defect: the functions above do not throw.
    return report_error(
        {.what = error.what(), .advice = "this is a bug in Muster; please report it"}, program);
  }
}

}  // namespace muster::cli
