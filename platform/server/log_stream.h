// A job's merged log as server-sent events: "log" for each record, now and then the id of the place
// that was reached, "end" with the job at the end; or the same as frames.
//
// On the EventLoop's thread.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "access/identity.h"
#include "logs/log_follower.h"
#include "server/event_stream.h"
#include "server/log_share.h"

namespace muster::server {

class LogStream : public EventStream {
 public:
  struct Start {
    std::string job;  ///< the id of one that exists now
    job::LogQuery query;
    std::string place;  ///< a LogPosition's text to go on from; empty: as the query has it
    LogFormat format = LogFormat::kEvents;
  };

  /// The controller must outlive the stream.
  LogStream(StreamLife life, control::Controller& controller, LogShares& shares,
            access::Identity who, Start start);

 protected:
  std::optional<http::BodyPiece> next() override;
  std::string ping() const override;

 private:
  bool still_sees() const;
  void ask();
  void take(const LogPiece& piece);
  std::string end_event() const;

  control::Controller& controller_;
  access::Identity who_;
  std::string job_;
  std::string place_;
  LogFormat format_;
  std::shared_ptr<LogShare> share_;
  /// While it looks for the last lines, which are others for each who asks.
  std::unique_ptr<logs::LogFollower> tail_;
  std::shared_ptr<void> asked_;
  bool asking_ = false;
  bool in_next_ = false;
  bool ended_ = false;
  std::optional<http::BodyPiece> piece_;
};

}  // namespace muster::server
