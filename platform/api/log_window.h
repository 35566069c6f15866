// Windows into the log of one task and searches in it (logs/log_index.h), as the API asks for them and
// answers: GET /v1/jobs/NAME/log-window and log-search.
//
// Pure; thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/query_parameters.h"
#include "base/result.h"
#include "job/log_record.h"

namespace muster::api {

/// Which log: of an attempt of a task.
struct LogPlace {
  std::string project;
  std::string task;            ///< empty: the first task
  std::optional<int> attempt;  ///< nothing: the last
};

/// ?task=T&attempt=A&line=N&lines=M&project=P
struct LogWindowRequest {
  LogPlace place;
  std::optional<uint64_t> line;  ///< nothing: the last lines
  size_t lines = 100;
};
base::Result<LogWindowRequest> log_window_from_parameters(const Parameters& parameters);

/// ?q=TEXT&regex=true&ignore_case=true&rank=R&stream=error&line=N&hits=M&context=C and LogPlace's
struct LogSearchRequest {
  LogPlace place;
  std::string text;  ///< not empty
  bool is_regex = false;
  bool ignores_case = false;  ///< for a text that is not a regular expression
  std::optional<int> rank;
  std::optional<job::LogStream> stream;
  uint64_t line = 0;
  size_t hits = 100;
  size_t context = 0;

  /// The function that finds hits. kInvalid: the fault of the pattern.
  base::Result<std::function<bool(const job::LogRecord&)>> matcher() const;
};
base::Result<LogSearchRequest> log_search_from_parameters(const Parameters& parameters);

/// A line of the answer.
struct LogLine {
  job::LogRecord record;
  uint64_t number = 0;
  uint64_t bytes = 0;  ///< of the whole line
  bool unfinished = false;
  bool hit = false;
};

/// {"task", "attempt", "bytes", "lines", "first", "complete", "records": [...]}, and of a search
/// "next".
struct LogAnswer {
  std::string task;
  int attempt = 0;
  uint64_t bytes = 0;
  uint64_t lines = 0;
  uint64_t first = 0;
  bool complete = true;
  std::vector<LogLine> records;
  std::optional<uint64_t> next;  ///< of a search: where to continue
};
std::string log_answer_to_json(const LogAnswer& answer);

}  // namespace muster::api
