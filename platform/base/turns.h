// Work of several parties, one piece at a time. The parties take turns: beside the piece in progress,
// a party waits for one piece of each other party, however many pieces that party has added.
//
// Not thread-safe: for the state of one thread, such as the EventLoop's.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>

namespace muster::base {

class Turns {
 public:
  /// To be called once, on the same thread, when a piece is finished. It may be called after the
  /// Turns have been destroyed.
  using Done = std::function<void()>;
  /// Begins a piece, which may go on after the call returns.
  using Piece = std::function<void(Done done)>;

  /// Begins the piece when its turn has come, perhaps during the call. Pieces of one party keep
  /// their order.
  void add(const std::string& party, Piece piece);

  /// How many pieces of the party have not begun.
  size_t waiting(const std::string& party) const;

 private:
  void begin_next();

  std::map<std::string, std::deque<Piece>> pieces_;  ///< by party; no entry is empty
  std::deque<std::string> order_;                    ///< the parties of pieces_; the next one first
  bool is_busy_ = false;                             ///< a piece has begun and is not finished
  bool is_beginning_ = false;                        ///< within begin_next()
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace muster::base
