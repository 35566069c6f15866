// The logs of all members of an array, and `submit --follow` of an array.
#include <unistd.h>

#include <iostream>
#include <optional>
#include <utility>

#include "api/client.h"
#include "api/wire.h"
#include "cli/common/array_view.h"
#include "cli/common/output.h"
#include "cli/common/terminal.h"
#include "cli/connection/connection.h"
#include "cli/logs/logs.h"
#include "cli/logs/paced_output.h"

namespace muster::cli::logs {

namespace {

class ArrayFollower {
 public:
  ArrayFollower(Connection& connection, Interrupts& interrupts, const FollowRequest& request)
      : connection_(connection),
        interrupts_(interrupts),
        request_(request),
        printer_(request.look, terminal_of(STDOUT_FILENO), request.head),
        output_(STDOUT_FILENO) {}

  /// Nothing: Ctrl-C, or the reader of the output is gone.
  Result<std::optional<job::Array>> run() {
    while (true) {
      const http::Wake wake{.fd = interrupts_.fd(), .on_wake = [this] {
                              left_ = interrupts_.take() || left_;
                              return !left_;
                            }};
      auto array = connection_.client().array_logs(
          request_.name, request_.query,
          {.on_record = [this](const job::LogRecord& record) { return print(record); },
           .on_array = [this](const job::Array& news) { tell(news); }},
          wake);
      printer_.finish(output_.buffer());
      const auto written = output_.flush();
      if (left_ || !written) return std::optional<job::Array>();
      if (array) return std::optional(*std::move(array));
      if (array.error().code != base::ErrorCode::kUnavailable) return array.error();
      MUSTER_CHECK(connection_.come_back());
      cursor_.restart();
    }
  }

 private:
  /// After a lost connection, records that were printed are sent again, and are skipped.
  bool print(const job::LogRecord& record) {
    const job::LogRecord* const unseen = cursor_.unseen(record);
    if (unseen == nullptr) return true;
    connection_.is_well();
    if (request_.look.json) {
      api::append_log_record(output_.buffer(), *unseen);
      output_.buffer() += '\n';
    } else {
      printer_.print(*unseen, output_.buffer());
    }
    left_ = !output_.flush();
    return !left_;
  }

  /// One line on standard error for each percent, and for the end.
  void tell(const job::Array& array) {
    if (array.percent == told_ && !array.ended) return;
    told_ = array.percent;
    std::cerr << "muster: " << array.spec.name << ": " << array_counts(array) << std::endl;
  }

  Connection& connection_;
  Interrupts& interrupts_;
  const FollowRequest& request_;
  LogPrinter printer_;
  PacedOutput output_;
  LogCursor cursor_;
  int told_ = -1;
  bool left_ = false;
};

}  // namespace

Result<int> follow_array(Connection& connection, Interrupts& interrupts,
                         const FollowRequest& request) {
  ArrayFollower follower(connection, interrupts, request);
  MUSTER_TRY(const std::optional<job::Array> array, follower.run());
  if (!array) return kExitInterrupted;
  if (!request.query.follow) return kExitDone;
  return array->phase == job::Phase::kSucceeded ? kExitDone : kExitFailed;
}

}  // namespace muster::cli::logs
