#include "api/log_window.h"

#include <algorithm>
#include <array>
#include <utility>

#include "api/wire.h"
#include "base/units.h"

namespace muster::api {

using base::Fault;
using base::Result;
using job::LogRecord;
using job::LogStream;

namespace {

constexpr size_t kMostWindowLines = 2000;
constexpr size_t kMostHits = 1000;
constexpr size_t kMostContext = 20;
constexpr size_t kLongestSearch = 200;

constexpr std::array<std::pair<std::string_view, LogStream>, 3> kStreamWords{
    {{"output", LogStream::kOutput}, {"error", LogStream::kError}, {"notice", LogStream::kNotice}}};

template <class Number>
std::string take_count(Number& into, const std::string& value, Number least, Number most) {
  const auto number = base::number_of<int64_t>(value);
  if (number && *number >= static_cast<int64_t>(least) &&
      static_cast<uint64_t>(*number) <= static_cast<uint64_t>(most)) {
    into = static_cast<Number>(*number);
    return "";
  }
  return in_quotes(value) + " is not a number from " + std::to_string(least) + " to " +
         std::to_string(most);
}

constexpr uint64_t kMostLine = uint64_t{1} << 53;  // as JavaScript has integers
constexpr int kMostInt = 2147483647;

template <class Number>
std::string take_count(std::optional<Number>& into, const std::string& value, Number most) {
  Number number{};
  std::string fault = take_count(number, value, Number{}, most);
  if (fault.empty()) into = number;
  return fault;
}

/// Whether `name` is a parameter of LogPlace; then `fault` is its fault.
bool takes_place(LogPlace& place, const std::string& name, const std::string& value,
                 std::string& fault) {
  if (name == "project") {
    place.project = value;
  } else if (name == "task") {
    place.task = value;
  } else if (name == "attempt") {
    fault = take_count(place.attempt, value, kMostInt);
  } else {
    return false;
  }
  return true;
}

std::string take_stream(std::optional<LogStream>& into, const std::string& value) {
  for (const auto& [word, stream] : kStreamWords) {
    if (value == word) {
      into = stream;
      return "";
    }
  }
  return in_quotes(value) + " is not output, error or notice";
}

std::string take_search_text(std::string& into, const std::string& value) {
  into = value;
  if (value.size() <= kLongestSearch) return "";
  return "is longer than " + std::to_string(kLongestSearch) + " bytes";
}

std::string take_search_parameter(LogSearchRequest& request, const std::string& name,
                                  const std::string& value) {
  std::string fault;
  if (takes_place(request.place, name, value, fault)) return fault;
  if (name == "q") return take_search_text(request.text, value);
  if (name == "regex") return take_flag(value, request.is_regex);
  if (name == "ignore_case") return take_flag(value, request.ignores_case);
  if (name == "rank") return take_count(request.rank, value, kMostInt);
  if (name == "stream") return take_stream(request.stream, value);
  if (name == "line") return take_count(request.line, value, uint64_t{0}, kMostLine);
  if (name == "hits") return take_count(request.hits, value, size_t{1}, kMostHits);
  if (name == "context") return take_count(request.context, value, size_t{0}, kMostContext);
  return unknown_parameter(name, {"project", "task", "attempt", "q", "regex", "ignore_case", "rank",
                                  "stream", "line", "hits", "context"});
}

char small(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

std::string in_small(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), small);
  return text;
}

using Matches = std::function<bool(const std::string&)>;

Result<Matches> matcher_of_text(const LogSearchRequest& request) {
  if (request.is_regex) {
    MUSTER_TRY(const job::LogPattern pattern, job::LogPattern::compile(request.text));
    return Matches([pattern](const std::string& line) { return pattern.found_in(line); });
  }
  if (!request.ignores_case) {
    return Matches([text = request.text](const std::string& line) {
      return line.find(text) != std::string::npos;
    });
  }
  return Matches([text = in_small(request.text)](const std::string& line) {
    return std::search(line.begin(), line.end(), text.begin(), text.end(),
                       [](char left, char right) { return small(left) == right; }) != line.end();
  });
}

void append_member(std::string& json, std::string_view name, std::string_view value) {
  if (json.back() != '{') json += ',';
  json += '"';
  json += name;
  json += "\":";
  json += value;
}

void append_line(std::string& json, const LogLine& line) {
  append_log_record(json, line.record);
  json.pop_back();  // the closing brace
  append_member(json, "line", std::to_string(line.number));
  append_member(json, "bytes", std::to_string(line.bytes));
  if (line.unfinished) append_member(json, "unfinished", "true");
  if (line.hit) append_member(json, "hit", "true");
  json += '}';
}

}  // namespace

Result<LogWindowRequest> log_window_from_parameters(const Parameters& parameters) {
  LogWindowRequest request;
  std::vector<Fault> faults = read_parameters(
      parameters, [&](const std::string& name, const std::string& value) -> std::string {
        std::string fault;
        if (takes_place(request.place, name, value, fault)) return fault;
        if (name == "line") return take_count(request.line, value, kMostLine);
        if (name == "lines") return take_count(request.lines, value, size_t{0}, kMostWindowLines);
        return unknown_parameter(name, {"project", "task", "attempt", "line", "lines"});
      });
  if (faults.empty()) return request;
  return wrong_query("the query for a part of a log is invalid", std::move(faults));
}

Result<LogSearchRequest> log_search_from_parameters(const Parameters& parameters) {
  LogSearchRequest request;
  std::vector<Fault> faults =
      read_parameters(parameters, [&](const std::string& name, const std::string& value) {
        return take_search_parameter(request, name, value);
      });
  if (request.text.empty()) faults.push_back({"q", "is missing: the text to search for"});
  if (faults.empty()) return request;
  return wrong_query("the search is invalid", std::move(faults));
}

Result<std::function<bool(const LogRecord&)>> LogSearchRequest::matcher() const {
  MUSTER_TRY(Matches matches, matcher_of_text(*this));
  return std::function<bool(const LogRecord&)>([matches = std::move(matches), only_rank = rank,
                                                only_stream = stream](const LogRecord& record) {
    if (only_rank && record.rank != only_rank) return false;
    if (only_stream && record.stream != *only_stream) return false;
    return matches(record.text);
  });
}

std::string log_answer_to_json(const LogAnswer& answer) {
  std::string json = "{";
  // A task has a name without characters that JSON escapes.
  append_member(json, "task", "\"" + answer.task + "\"");
  append_member(json, "attempt", std::to_string(answer.attempt));
  append_member(json, "bytes", std::to_string(answer.bytes));
  append_member(json, "lines", std::to_string(answer.lines));
  append_member(json, "first", std::to_string(answer.first));
  append_member(json, "complete", answer.complete ? "true" : "false");
  if (answer.next) append_member(json, "next", std::to_string(*answer.next));
  append_member(json, "records", "[");
  for (const LogLine& line : answer.records) {
    if (json.back() != '[') json += ',';
    append_line(json, line);
  }
  return json + "]}";
}

}  // namespace muster::api
