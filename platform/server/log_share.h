// One job's log for all who watch it: what one of them has read and written for its client, those
// who come to the same place are sent as well, byte for byte the same bytes in memory.
//
// Followers of a log meet where they wait for more, and go on together from there. Whoever is
// slower finds what came meanwhile in a store of bounded size; whoever has fallen out of it reads
// for himself, until he has caught up.
//
// On the EventLoop's thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "control/controller.h"
#include "http/message.h"
#include "job/log_batch.h"
#include "logs/log_follower.h"

namespace muster::server {

/// How a client reads a log: as events, or as the frames of api/log_stream.h.
enum class LogFormat { kEvents, kFrames };

/// Part of a log as a client is sent it, and the place behind it.
struct LogPiece {
  http::Piece text;  ///< may be empty
  std::string next;  ///< a LogPosition; nothing to do with the query it was read for
  bool end = false;  ///< there will be no more
};

/// `batch`, and the id of the place behind it.
LogPiece encoded_piece(const job::LogBatch& batch, const logs::LogPosition& next, bool end,
                       LogFormat format);

/// The log of one job as one query shows it, in one format.
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

  /// The piece behind `place` (empty: the beginning) now or later, as long as the handle is kept.
  [[nodiscard]] std::shared_ptr<void> ask(const std::string& place, Take take);

  size_t kept_bytes() const { return kept_bytes_; }
  uint64_t read_pieces() const { return read_pieces_; }  ///< how many were not from the store

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
  std::vector<std::unique_ptr<Reader>> readers_;    ///< the one that was asked last at the end
  std::unordered_map<std::string, LogPiece> kept_;  ///< by the place in front of it
  std::deque<std::string> kept_order_;              ///< oldest first
  size_t kept_bytes_ = 0;
  std::shared_ptr<size_t> kept_of_all_;
  uint64_t read_pieces_ = 0;
};

/// Finds the share of a log, for as long as anybody has it.
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

}  // namespace muster::server
