// The logs of jobs, shared by all their followers: a piece that was read and encoded for one
// follower is sent to every other follower that reaches the same place, from the same memory.
//
// Followers of a log meet where they wait for more, and continue together. A slower follower finds
// the pieces in a cache of bounded size; a follower that needs pieces which have left the cache
// reads the log itself until it has caught up.
//
// On the EventLoop's thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "access/identity.h"
#include "control/controller.h"
#include "http/message.h"
#include "job/log_record.h"
#include "logs/log_follower.h"
#include "server/event_stream.h"

namespace muster::server {

/// The encoding of a log: events, or the frames of api/log_stream.h.
enum class LogFormat { kEvents, kFrames };

/// An encoded part of a log, and the place after it.
struct LogPiece {
  http::SharedBytes text;  ///< may be empty
  std::string next;        ///< a LogPosition, independent of the query
  bool end = false;        ///< the log ends here
};

/// `batch`, and the id of the place after it.
LogPiece encoded_piece(const job::LogBatch& batch, const logs::LogPosition& next, bool end,
                       LogFormat format);

/// The log of one job for one query, in one format.
class LogShare : public std::enable_shared_from_this<LogShare> {
 public:
  using Take = std::function<void(const LogPiece&)>;
  static constexpr size_t kMostKept = 16 << 20;       ///< bytes of one log
  static constexpr size_t kMostKeptOfAll = 64 << 20;  ///< and of all logs

  /// Of a job that exists now, by its id. `query` has no tail. `kept_of_all` counts for all shares.
  /// The controller must outlive it.
  LogShare(control::Controller& controller, std::string job, job::LogQuery query, LogFormat format,
           std::shared_ptr<size_t> kept_of_all);
  ~LogShare();

  /// Passes on the piece after `place` (empty: the beginning) now or later, as long as the handle
  /// is kept.
  [[nodiscard]] std::shared_ptr<void> ask(const std::string& place, Take take);

  size_t kept_bytes() const { return kept_bytes_; }
  uint64_t read_pieces() const { return read_pieces_; }  ///< pieces that were not in the store

 private:
  /// Reads from one place on.
  struct Reader {
    std::string place;
    std::unique_ptr<logs::LogFollower> follower;
    bool pulling = false;
    std::vector<std::weak_ptr<Take>> takers;
  };

  Reader& reader_at(const std::string& place);
  void pull(Reader& reader);
  void read(Reader* reader, const job::LogBatch& batch, bool end);
  void keep(const std::string& place, const LogPiece& piece);
  void forget_oldest();

  control::Controller& controller_;
  std::string job_;
  job::LogQuery query_;
  LogFormat format_;
  std::vector<std::unique_ptr<Reader>> readers_;    ///< the most recently used at the end
  std::unordered_map<std::string, LogPiece> kept_;  ///< by the place before it
  std::deque<std::string> kept_order_;              ///< oldest first
  size_t kept_bytes_ = 0;
  std::shared_ptr<size_t> kept_of_all_;
  uint64_t read_pieces_ = 0;
};

/// Finds the LogShare of a log, as long as a follower uses it.
class LogShares {
 public:
  explicit LogShares(control::Controller& controller) : controller_(controller) {}
  std::shared_ptr<LogShare> share(const std::string& job, const job::LogQuery& query,
                                  LogFormat format);

 private:
  control::Controller& controller_;
  std::shared_ptr<size_t> kept_of_all_ = std::make_shared<size_t>(0);
  std::map<std::string, std::weak_ptr<LogShare>> shares_;  ///< by job, query and format
};

// A job's merged log as server-sent events: "log" for each record, from time to time the id of the
// place that was reached, and last "end" with the job; or the same as frames.

class LogStream : public EventStream {
 public:
  struct Start {
    std::string job;  ///< the id of an existing job
    job::LogQuery query;
    std::string place;  ///< a LogPosition's text to continue from; empty: as in the query
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
  /// While the stream searches the last lines, which differ for each follower.
  std::unique_ptr<logs::LogFollower> tail_;
  std::shared_ptr<void> asked_;
  bool asking_ = false;
  bool in_next_ = false;
  bool ended_ = false;
  std::optional<http::BodyPiece> piece_;
};

}  // namespace muster::server
