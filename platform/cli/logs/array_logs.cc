// The logs of all members of an array, and `submit --follow` of an array.
#include <unistd.h>

#include <iostream>
#include <optional>
#include <utility>

#include "api/client.h"
#include "cli/common/array_view.h"
#include "cli/common/output.h"
#include "cli/common/terminal.h"
#include "cli/connection/connection.h"
#include "cli/logs/logs.h"
#include "cli/logs/paced_output.h"

namespace muster::cli::logs {

namespace {

struct ArrayEnd {
  FollowEnd::How how = FollowEnd::How::kEnded;
  job::Array array = {};  ///< set with kEnded
  bool has_output = false;
};

class ArrayFollower {
 public:
  ArrayFollower(Connection& connection, Interrupts& interrupts, const FollowRequest& request)
      : connection_(connection),
        interrupts_(interrupts),
        request_(request),
        terminal_(terminal_of(STDOUT_FILENO)),
        printer_(request.look, terminal_, request.head),
        output_(STDOUT_FILENO) {}

  Result<ArrayEnd> run() {
    while (true) {
      const http::Wake wake{.fd = interrupts_.fd(), .on_wake = [this] {
                              left_ = interrupts_.take() || left_;
                              return !left_;
                            }};
      auto array = connection_.client().array_logs(
          request_.name, request_.query,
          {.on_record = [this](const job::LogRecord& record) { return print(record); },
           .on_array = [this](const job::Array& news) { report(news); }},
          wake);
      printer_.finish(output_.buffer());
      if (!flush()) {
        MUSTER_TRY(const FollowEnd::How how, end_by_output(*output_error_));
        return ArrayEnd{.how = how};
      }
      if (left_) return ArrayEnd{.how = FollowEnd::How::kInterrupted};
      if (array) return ArrayEnd{.array = *std::move(array), .has_output = has_output_};
      if (array.error().code != base::ErrorCode::kUnavailable) return array.error();
      MUSTER_TRY(const bool is_back, connection_.come_back(interrupts_.fd()));
      if (!is_back) return ArrayEnd{.how = FollowEnd::How::kInterrupted};
      cursor_.restart();
    }
  }

 private:
  /// After a lost connection, records that were printed are sent again, and are skipped.
  bool print(const job::LogRecord& record) {
    const job::LogRecord* const unseen = cursor_.unseen(record);
    if (unseen == nullptr) return true;
    connection_.is_well();
    has_output_ = true;
    printer_.resize(columns_now(terminal_));
    if (request_.look.json) {
      append_json(*unseen, terminal_, output_.buffer());
    } else {
      printer_.print(*unseen, output_.buffer());
    }
    return flush();
  }

  /// False: the output cannot be written, now or before.
  bool flush() {
    const auto written = output_.flush();
    if (!written && !output_error_) output_error_ = written.error();
    return !output_error_;
  }

  /// One line on standard error for each percent, and for the end.
  void report(const job::Array& array) {
    if (array.percent == shown_percent_ && !array.ended) return;
    shown_percent_ = array.percent;
    // Standard error is usually the same terminal.
    if (terminal_.is_terminal) printer_.hide(output_.buffer());
    flush();
    std::cerr << "muster: " << array.spec.name << ": " << array_counts(array) << std::endl;
    printer_.draw_latest(output_.buffer());
    flush();
  }

  Connection& connection_;
  Interrupts& interrupts_;
  const FollowRequest& request_;
  Terminal terminal_;
  LogPrinter printer_;
  PacedOutput output_;
  LogCursor cursor_;
  int shown_percent_ = -1;
  std::optional<base::Error> output_error_;  ///< the first one
  bool left_ = false;                        ///< after Ctrl-C
  bool has_output_ = false;
};

}  // namespace

Result<int> follow_array(Connection& connection, Interrupts& interrupts,
                         const FollowRequest& request) {
  ArrayFollower follower(connection, interrupts, request);
  MUSTER_TRY(const ArrayEnd end, follower.run());
  if (end.how == FollowEnd::How::kPipeClosed) return kExitBrokenPipe;
  if (end.how == FollowEnd::How::kInterrupted) return kExitInterrupted;
  if (!end.has_output) report_no_match(request);
  if (!request.query.follow) return kExitDone;
  return end.array.phase == job::Phase::kSucceeded ? kExitDone : kExitFailed;
}

}  // namespace muster::cli::logs
