#include "job/log_record.h"

#include <algorithm>
#include <charconv>
#include <numeric>
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

/// The index after the escape that begins at `at`: "\d", "\cJ".
size_t end_of_escape(std::string_view text, size_t at) {
  const bool is_control = at + 1 < text.size() && text[at + 1] == 'c';
  return std::min(text.size(), at + (is_control ? 3 : 2));
}

/// The index after the set that begins at `at`: "[^a-z]", "[[:digit:]_]".
size_t end_of_set(std::string_view text, size_t at) {
  constexpr std::string_view kClasses = ".:=";
  size_t i = at + 1;
  while (i < text.size() && text[i] != ']') {
    if (text[i] == '\\') {
      i = end_of_escape(text, i);
    } else if (text[i] == '[' && i + 1 < text.size() &&
               kClasses.find(text[i + 1]) != std::string_view::npos) {
      // The class ends at the next such letter and a bracket; std::regex rejects all else.
      const size_t end = text.find(text[i + 1], i + 2);
      i = end == std::string_view::npos ? text.size() : std::min(text.size(), end + 2);
    } else {
      ++i;
    }
  }
  return std::min(text.size(), i + 1);
}

/// What is known of a pattern before std::regex compiles it, which takes time and memory.
struct PatternShape {
  size_t states = 0;  ///< of the automaton, about
  bool looks_ahead = false;
};

/// Reads a pattern as std::regex does, which copies a part for each repetition of its count.
class PatternScan {
 public:
  explicit PatternScan(std::string_view text) : text_(text) {}

  PatternShape shape() {
    for (size_t at = 0; at < text_.size();) at = take(at);
    shape_.states = std::accumulate(groups_.begin(), groups_.end(), size_t{0});
    return shape_;
  }

 private:
  /// Takes the part that begins at `at`. Returns the index after it.
  size_t take(size_t at) {
    switch (text_[at]) {
      case '(':
        return open_group(at);
      case '{':
        return repeat(at);
      case ')':
        close_group();
        return at + 1;
      case '*':
      case '+':
      case '?':
        grow_part(last_ + 1);
        return at + 1;
      case '\\':
        add_part(1);
        return end_of_escape(text_, at);
      case '[':
        add_part(1);
        return end_of_set(text_, at);
      default:  // '|' is a state, too
        add_part(1);
        return at + 1;
    }
  }

  void add_part(size_t states) {
    last_ = states;
    groups_.back() += states;
  }

  void grow_part(size_t states) {
    groups_.back() += states - last_;
    last_ = states;
  }

  size_t open_group(size_t at) {
    groups_.push_back(0);
    last_ = 0;
    const std::string_view begin = text_.substr(at, 3);
    if (!begin.starts_with("(?")) return at + 1;
    shape_.looks_ahead = shape_.looks_ahead || begin == "(?=" || begin == "(?!";
    return at + begin.size();
  }

  void close_group() {
    if (groups_.size() == 1) return;  // invalid
    const size_t states = groups_.back();
    groups_.pop_back();
    add_part(states + 1);
  }

  /// "{2}", "{2,5}" or "{2,}", which needs one copy more than its number.
  size_t repeat(size_t at) {
    const std::string_view rest = text_.substr(at + 1);
    const std::string_view braces = rest.substr(0, std::min(rest.find('}'), rest.size()));
    const auto copies =
        static_cast<size_t>(largest_count(braces)) + (braces.ends_with(',') ? 1 : 0);
    const bool is_range = braces.find(',') != std::string_view::npos;
    grow_part((last_ + (is_range ? 1 : 0)) * copies);
    return std::min(text_.size(), at + 1 + braces.size() + 1);
  }

  std::string_view text_;
  std::vector<size_t> groups_{0};  ///< the states of each open group, the outermost first
  size_t last_ = 0;                ///< the states of the last part, which a count repeats
  PatternShape shape_;
};

}  // namespace

struct LogPattern::Compiled {
  std::optional<std::string> literal;  ///< for a pattern without special characters
  std::regex regex;                    ///< for other patterns
  size_t states = 0;                   ///< of the regex
};

namespace {

std::string pattern_fault_text(const std::regex_error& error) {
  const auto code = error.code();
  if (code == std::regex_constants::error_brack) return "a '[' has no ']'";
  // The library reports "*a" as a parenthesis, too.
  if (code == std::regex_constants::error_paren) {
    return "a '(' or ')' has no counterpart, or nothing precedes a '*', '+' or '?'";
  }
  if (code == std::regex_constants::error_badbrace) return "a '{' has no count and '}' behind it";
  if (code == std::regex_constants::error_range) return "a range such as [z-a] is reversed";
  return error.what();
}

}  // namespace

Result<LogPattern> LogPattern::compile(const std::string& text) {
  if (text.size() > kMaxPatternBytes) {
    return Error{.code = ErrorCode::kInvalid,
                 .what = "is longer than " + std::to_string(kMaxPatternBytes) + " bytes"};
  }
  // Most patterns are plain words, which are found a hundred times faster.
  if (text.find_first_of("^$\\.*+?()[]{}|") == std::string::npos) {
    return LogPattern(
        std::make_shared<Compiled>(Compiled{.literal = text, .regex = {}, .states = 0}));
  }
  if (repeats_too_often(text)) {
    return invalid_text(text, "repeats a part more than " + std::to_string(kMaxPatternRepeats) +
                                  " times; use * or + instead of large counts");
  }
  const PatternShape shape = PatternScan(text).shape();
  if (shape.looks_ahead) {
    return invalid_text(text, "contains a lookahead, (?= or (?!, which is not supported");
  }
  if (shape.states > kMaxPatternStates) {
    return invalid_text(text, "has " + std::to_string(shape.states) +
                                  " parts when its counts are written out, more than " +
                                  std::to_string(kMaxPatternStates) +
                                  "; use * or + instead of counts");
  }
  try {
    // Compiled alone first: "a)|(b" is invalid, although it would be valid in parentheses.
    static_cast<void>(std::regex(text, kSyntax));
    // A match from the start of the line takes time linear in its length; a search would try every
    // start, and take quadratic time.
    return LogPattern(
        std::make_shared<Compiled>(Compiled{.literal = {},
                                            .regex = std::regex("[^]*(?:" + text + ")", kSyntax),
                                            .states = shape.states}));
  } catch (const std::regex_error& error) {
    if (error.code() == std::regex_constants::error_complexity) {
      return invalid_text(text, "contains a back reference, which is not supported");
    }
    return invalid_text(text, "is not a pattern: " + pattern_fault_text(error));
  }
}

bool LogPattern::found_in(std::string_view line) const {
  line = line.substr(0, kMaxMatchedBytes);
  if (compiled_->literal) return line.find(*compiled_->literal) != std::string_view::npos;
  return std::regex_search(line.begin(), line.end(), compiled_->regex,
                           std::regex_constants::match_continuous);
}

size_t LogPattern::states() const {
  return compiled_->states;
}

}  // namespace muster::job
