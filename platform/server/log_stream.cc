#include "server/log_stream.h"

#include "api/routes.h"
#include "api/wire.h"
#include "http/server_sent_events.h"

namespace muster::server {

LogStream::LogStream(control::Controller& controller, std::string job_name,
                     const job::LogQuery& query)
    : controller_(controller),
      job_name_(std::move(job_name)),
      follower_(controller.follow_logs(job_name_, query)) {}

// A job that was deleted while it was followed has no state to end with: the stream then just ends,
// which the reader takes for a server that went away and asks again, to be told that it is gone.
void LogStream::append_end(std::string& text) const {
  if (const auto job = controller_.find(job_name_)) {
    http::append_event(text, api::kEndEvent, api::job_to_json(**job));
  }
}

void LogStream::pull(Deliver deliver) {
  if (ended_) return deliver(std::nullopt);
  follower_->pull(
      [this, deliver = std::move(deliver)](const std::vector<job::LogRecord>& records, bool end) {
        std::string text;
        for (const job::LogRecord& record : records) {
          http::append_event(text, api::kLogEvent, api::log_record_to_json(record));
        }
        if (end) append_end(text);
        ended_ = end;
        if (text.empty()) return end ? deliver(std::nullopt) : deliver(std::string(http::kPing));
        deliver(std::move(text));
      });
}

}  // namespace muster::server
