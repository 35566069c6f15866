// GET /v1/jobs/{name}/logs.

#include "server/log_routes.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "api/job_query.h"
#include "api/log_stream.h"
#include "api/routes.h"
#include "api/wire.h"
#include "http/server_sent_events.h"
#include "logs/log_position.h"
#include "server/router.h"
#include "server/routes.h"
#include "server/sight.h"

namespace muster::server {

namespace {

base::Error wrong_place() {
  return {.code = base::ErrorCode::kInvalid,
          .what = "the id of the last event is not from a stream of logs",
          .advice = "send the id unchanged, or no id to start from the beginning"};
}

/// Frames are sent only to clients that request them explicitly.
LogFormat requested_format(const http::Request& request) {
  const auto accept = request.headers.find("accept");
  const bool frames = accept != request.headers.end() &&
                      accept->second.find(api::kLogStreamType) != std::string::npos;
  return frames ? LogFormat::kFrames : LogFormat::kEvents;
}

base::Result<void> check_attempt(const job::Job& job, std::optional<int> attempt) {
  if (!attempt || *attempt <= job.attempt) return {};
  const std::string had = job.attempt == 0 ? "has not started yet"
                          : job.attempt == 1
                              ? "has had one attempt"
                              : "has had " + std::to_string(job.attempt) + " attempts";
  return base::Error{.code = base::ErrorCode::kNotFound,
                     .what = "job '" + job.spec.name + "' has no attempt " +
                             std::to_string(*attempt) + ": it " + had};
}

RouteAnswer logs(base::EventLoop& loop, control::Controller& controller, LogShares& shares,
                 const ApiCall& call) {
  const Sight sight(controller, call.who);
  const auto project = call.request.query.find("project");
  const std::string& name = call.path.at("name");
  MUSTER_TRY(const job::Job* const job,
             sight.job(name, project == call.request.query.end() ? "" : project->second,
                       access::Role::kViewer));
  MUSTER_TRY(job::LogQuery query, api::log_query_from_parameters(call.request.query));
  MUSTER_CHECK(check_task(*job, query.task));
  MUSTER_CHECK(check_attempt(*job, query.attempt));
  const std::string place = last_event_id(call.request);
  if (!place.empty() && !logs::log_position_of(place)) return wrong_place();
  const LogFormat format = requested_format(call.request);
  return event_answer(
      std::make_shared<LogStream>(
          StreamLife{.loop = loop, .still_valid = call.still_valid}, controller, shares, call.who,
          LogStream::Start{
              .job = job->id, .query = std::move(query), .place = place, .format = format}),
      format == LogFormat::kFrames ? api::kLogStreamType : http::kEventStream);
}

}  // namespace

void add_log_routes(Router& router, base::EventLoop& loop, control::Controller& controller) {
  const auto shares = std::make_shared<LogShares>(controller);
  router.add("GET", "/v1/jobs/{name}/logs", Permission::kSignedIn,
             at_once([&loop, &controller, shares](const ApiCall& call) {
               return logs(loop, controller, *shares, call);
             }));
}

using job::LogRecord;
using logs::LogPosition;

namespace {

// The maximum number of idle readers, which bounds descriptors and memory.
constexpr size_t kMostIdleReaders = 4;

/// The approximate size of a record as an event, without its text.
constexpr size_t kRecordOverhead = 200;

/// Unique for each query: free text comes last, preceded by its length.
std::string share_key(const std::string& job, const job::LogQuery& query, LogFormat format) {
  std::string key = job + (query.follow ? " follow" : " read") +
                    (format == LogFormat::kEvents ? " events" : " frames");
  if (query.since) key += " since " + std::to_string(query.since->time_since_epoch().count());
  if (query.attempt) key += " attempt " + std::to_string(*query.attempt);
  if (query.rank) key += " rank " + std::to_string(*query.rank);
  if (query.task) key += " task " + std::to_string(query.task->size()) + " " + *query.task;
  return key + " grep " + query.grep;
}

void append_events(std::string& text, const job::LogBatch& batch) {
  const auto records = job::records_of(batch);
  text.reserve(batch.bytes().size() + records.size() * kRecordOverhead);
  for (const LogRecord& record : records) {
    // A record is a single line, so its text need not be searched for newlines as in
    // append_event().
    text += "event: ";
    text += api::kLogEvent;
    text += "\ndata: ";
    api::append_log_record(text, record);
    text += "\n\n";
  }
}

}  // namespace

LogPiece encoded_piece(const job::LogBatch& batch, const LogPosition& next, bool end,
                       LogFormat format) {
  std::string text;
  LogPiece piece{.text = nullptr, .next = to_string(next), .end = end};
  if (format == LogFormat::kFrames) {
    api::append_log_batch(text, batch);
    api::append_log_frame(text, api::LogFrameKind::kPlace, piece.next);
  } else {
    append_events(text, batch);
    http::append_event_id(text, piece.next);
  }
  // Copying is not worthwhile for a small unused capacity.
  if (text.capacity() - text.size() > text.size() / 8) text.shrink_to_fit();
  piece.text = std::make_shared<const std::string>(std::move(text));
  return piece;
}

LogShare::LogShare(control::Controller& controller, std::string job, job::LogQuery query,
                   LogFormat format, std::shared_ptr<size_t> kept_of_all)
    : controller_(controller),
      job_(std::move(job)),
      query_(std::move(query)),
      format_(format),
      kept_of_all_(std::move(kept_of_all)) {}

LogShare::~LogShare() {
  *kept_of_all_ -= kept_bytes_;
}

std::shared_ptr<void> LogShare::ask(const std::string& place, Take take) {
  auto handle = std::make_shared<Take>(std::move(take));
  if (const auto kept = kept_.find(place); kept != kept_.end()) {
    const LogPiece piece = kept->second;  // outlives further requests of the receiver
    (*handle)(piece);
    return handle;
  }
  Reader& reader = reader_at(place);
  reader.takers.push_back(handle);
  pull(reader);
  return handle;
}

LogShare::Reader& LogShare::reader_at(const std::string& place) {
  const auto found = std::find_if(readers_.begin(), readers_.end(),
                                  [&](const auto& reader) { return reader->place == place; });
  if (found != readers_.end()) {
    std::rotate(found, found + 1, readers_.end());
    return *readers_.back();
  }
  if (readers_.size() >= kMostIdleReaders) {
    std::erase_if(readers_, [](const auto& reader) {
      return std::all_of(reader->takers.begin(), reader->takers.end(),
                         [](const auto& taker) { return taker.expired(); });
    });
  }
  auto reader = std::make_unique<Reader>(
      Reader{.place = place, .follower = controller_.follow_logs(job_, query_), .takers = {}});
  if (const auto from = logs::log_position_of(place)) reader->follower->resume(*from);
  readers_.push_back(std::move(reader));
  return *readers_.back();
}

void LogShare::pull(Reader& reader) {
  if (std::exchange(reader.pulling, true)) return;
  reader.follower->pull(
      [this, reader = &reader](const job::LogBatch& batch, bool end) { read(reader, batch, end); });
}

void LogShare::read(Reader* reader, const job::LogBatch& batch, bool end) {
  const bool shared = weak_from_this().use_count() > 1;
  const auto self = shared_from_this();  // the last receiver may destroy this
  ++read_pieces_;
  const LogPiece piece = encoded_piece(batch, reader->follower->position(), end, format_);
  const auto takers = std::exchange(reader->takers, {});
  // The end is that of the log at this time: later followers read it again.
  if (shared && !end) keep(reader->place, piece);
  reader->place = piece.next;
  reader->pulling = false;
  if (end) std::erase_if(readers_, [&](const auto& other) { return other.get() == reader; });
  for (const auto& weak : takers) {
    if (const auto take = weak.lock()) (*take)(piece);
  }
}

void LogShare::keep(const std::string& place, const LogPiece& piece) {
  const size_t bytes = piece.text->size();
  if (bytes > kMostKept || !kept_.emplace(place, piece).second) return;
  kept_order_.push_back(place);
  kept_bytes_ += bytes;
  *kept_of_all_ += bytes;
  while (kept_bytes_ > kMostKept || (*kept_of_all_ > kMostKeptOfAll && !kept_order_.empty())) {
    forget_oldest();
  }
}

void LogShare::forget_oldest() {
  const auto oldest = kept_.find(kept_order_.front());
  const size_t bytes = oldest->second.text->size();
  kept_bytes_ -= bytes;
  *kept_of_all_ -= bytes;
  kept_.erase(oldest);
  kept_order_.pop_front();
}

std::shared_ptr<LogShare> LogShares::share(const std::string& job, const job::LogQuery& query,
                                           LogFormat format) {
  std::erase_if(shares_, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<LogShare>& known = shares_[share_key(job, query, format)];
  if (auto share = known.lock()) return share;
  auto share = std::make_shared<LogShare>(controller_, job, query, format, kept_of_all_);
  known = share;
  return share;
}

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

/// The project may have been moved or deleted while the log is followed.
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

// A job that was deleted while it was followed has no final state: the stream simply ends. The
// client then reconnects, and is informed that the job does not exist.
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
