#include "job/log_record.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <regex>

namespace muster::job {

size_t LogBatch::index_of(const Source& source) {
  // Most output comes from the same source as the previous run.
  if (!runs_.empty() && sources_[runs_.back().source] == source) return runs_.back().source;
  for (size_t i = sources_.size(); i-- > 0;) {
    if (sources_[i] == source) return i;
  }
  sources_.push_back(source);
  return sources_.size() - 1;
}

void LogBatch::add(const Source& source, base::Time time, std::string_view bytes) {
  if (bytes.empty()) return;
  const size_t index = index_of(source);
  const bool goes_on = !runs_.empty() && runs_.back().source == index &&
                       runs_.back().time == time && bytes_.back() == '\n' && bytes.back() == '\n';
  bytes_ += bytes;
  if (goes_on) {
    runs_.back().size += bytes.size();
  } else {
    runs_.push_back({.source = index, .time = time, .size = bytes.size()});
  }
}

void LogBatch::clear() {
  sources_.clear();
  runs_.clear();
  bytes_.clear();
}

LogRecord record_of(const LogSource& source) {
  return {.time = {},
          .task = source.task,
          .attempt = source.attempt,
          .host = source.host,
          .rank = source.rank,
          .stream = source.stream,
          .text = {}};
}

std::vector<LogRecord> records_of(const LogBatch& batch) {
  std::vector<LogRecord> records;
  std::string_view rest = batch.bytes();
  for (const LogBatch::Run& run : batch.runs()) {
    LogRecord record = record_of(*batch.sources()[run.source]);
    record.time = run.time;
    for_each_line(rest.substr(0, run.size), record, [&](const LogRecord& line) {
      records.push_back(line);
      return true;
    });
    rest.remove_prefix(run.size);
  }
  return records;
}

using base::Error;
using base::ErrorCode;
using base::invalid_text;
using base::Result;

namespace {

constexpr auto kSyntax = std::regex_constants::ECMAScript | std::regex_constants::nosubs |
                         std::regex_constants::__polynomial;

/// The larger number of "{2,30}", or 1 if there is none.
int largest_count(std::string_view braces) {
  int largest = 1;
  for (size_t i = 0; i < braces.size(); ++i) {
    int number = 0;
    const auto [end, error] = std::from_chars(&braces[i], braces.data() + braces.size(), number);
    if (error == std::errc::result_out_of_range) return kMaxPatternRepeats + 1;
    if (error != std::errc{}) continue;
    largest = std::max(largest, number);
    i = static_cast<size_t>(end - braces.data());
  }
  return largest;
}

/// Bounds the number of copies of a part that std::regex makes: nested counts multiply, so the
/// product of all counts is an upper bound.
bool repeats_too_often(std::string_view text) {
  int64_t product = 1;
  for (size_t open = text.find('{'); open != std::string_view::npos;
       open = text.find('{', open + 1)) {
    const std::string_view rest = text.substr(open + 1);
    product *= largest_count(rest.substr(0, std::min(rest.find('}'), rest.size())));
    if (product > kMaxPatternRepeats) return true;
  }
  return false;
}

}  // namespace

struct LogPattern::Compiled {
  std::optional<std::string> literal;  ///< for a pattern without special characters
  std::regex regex;                    ///< for other patterns
};

Result<LogPattern> LogPattern::compile(const std::string& text) {
  if (text.size() > kMaxPatternBytes) {
    return Error{.code = ErrorCode::kInvalid,
                 .what = "is longer than " + std::to_string(kMaxPatternBytes) + " bytes"};
  }
  // Most patterns are plain words, which are found a hundred times faster.
  if (text.find_first_of("^$\\.*+?()[]{}|") == std::string::npos) {
    return LogPattern(std::make_shared<Compiled>(Compiled{.literal = text, .regex = {}}));
  }
  if (repeats_too_often(text)) {
    return invalid_text(text, "repeats a part more than " + std::to_string(kMaxPatternRepeats) +
                                  " times; use * or + instead of large counts");
  }
  try {
    // Compiled alone first: "a)|(b" is invalid, although it would be valid in parentheses.
    static_cast<void>(std::regex(text, kSyntax));
    // A match from the start of the line takes time linear in its length; a search would try every
    // start, and take quadratic time.
    return LogPattern(std::make_shared<Compiled>(
        Compiled{.literal = {}, .regex = std::regex("[^]*(?:" + text + ")", kSyntax)}));
  } catch (const std::regex_error& error) {
    if (error.code() == std::regex_constants::error_complexity) {
      return invalid_text(text, "contains a back reference, which is not supported");
    }
    return invalid_text(text, "is not a pattern: " + std::string(error.what()));
  }
}

bool LogPattern::found_in(std::string_view line) const {
  line = line.substr(0, kMaxMatchedBytes);
  if (compiled_->literal) return line.find(*compiled_->literal) != std::string_view::npos;
  return std::regex_search(line.begin(), line.end(), compiled_->regex,
                           std::regex_constants::match_continuous);
}

}  // namespace muster::job
