#include "server/log_stream.h"

#include <utility>

#include "api/log_stream.h"
#include "api/routes.h"
#include "api/wire.h"
#include "http/server_sent_events.h"
#include "server/sight.h"

namespace muster::server {

LogStream::LogStream(StreamLife life, control::Controller& controller, LogShares& shares,
                     access::Identity who, Start start)
    : EventStream(std::move(life)),
      controller_(controller),
      who_(std::move(who)),
      job_(std::move(start.job)),
      place_(std::move(start.place)),
      format_(start.format) {
  if (start.query.tail && place_.empty()) tail_ = controller.follow_logs(job_, start.query);
  start.query.tail.reset();
  share_ = shares.share(job_, start.query, format_);
}

/// Its project may have been moved below another, or deleted, while its log is followed.
bool LogStream::still_sees() const {
  const job::Job* const job = controller_.jobs().with_id(job_);
  return job == nullptr || Sight(controller_, who_).sees(*job);
}

std::optional<http::BodyPiece> LogStream::next() {
  if (!still_sees()) return http::BodyPiece(std::nullopt);
  if (!piece_ && ended_) return http::BodyPiece(std::nullopt);
  if (!piece_ && !asking_) {
    in_next_ = true;
    ask();
    in_next_ = false;
  }
  return std::exchange(piece_, std::nullopt);
}

void LogStream::ask() {
  asking_ = true;
  if (tail_ != nullptr && !place_.empty() && !tail_->in_tail()) tail_.reset();
  if (tail_ == nullptr) {
    asked_ = share_->ask(place_, [this](const LogPiece& piece) { take(piece); });
    return;
  }
  tail_->pull([this](const job::LogBatch& batch, bool end) {
    take(encoded_piece(batch, tail_->position(), end, format_));
  });
}

void LogStream::take(const LogPiece& piece) {
  asking_ = false;
  place_ = piece.next;
  ended_ = piece.end;
  piece_ = ended_ ? http::BodyPiece(*piece.text + end_event()) : http::BodyPiece(piece.text);
  if (!in_next_) wake();
}

std::string LogStream::ping() const {
  if (format_ == LogFormat::kEvents) return EventStream::ping();
  std::string text;
  api::append_log_frame(text, api::LogFrameKind::kPing);
  return text;
}

// A job that was deleted while it was followed has no state to end with: the stream then just ends,
// which the reader takes for a server that went away and asks again, to be told that it is gone.
std::string LogStream::end_event() const {
  std::string text;
  if (const job::Job* const job = controller_.jobs().with_id(job_)) {
    const Sight sight(controller_, who_);
    const std::string document = api::job_to_json(sight.redacted(*job));
    if (format_ == LogFormat::kFrames) {
      api::append_log_frame(text, api::LogFrameKind::kEnd, document);
    } else {
      http::append_event(text, api::kEndEvent, document);
    }
  }
  return text;
}

}  // namespace muster::server
