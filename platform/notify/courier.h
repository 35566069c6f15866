// Brings notifications to their receivers: looks the name up, holds each of its addresses against
// the rules, and makes the request, on threads of its own.
//
// On the EventLoop's thread, which must outlive it; callbacks are called there, and none after it
// has gone. It goes at once: what is under way is given up.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "http/message.h"
#include "http/outbound.h"
#include "notify/address_rules.h"

namespace muster::notify {

struct Errand {
  Receiver receiver;
  http::Headers headers;
  std::string body;
};

/// What came of one attempt.
struct Outcome {
  int status = 0;                    ///< of the answer; 0: there was none
  std::string answer;                ///< its body, or as much of it as was read
  std::optional<base::Error> fault;  ///< why there was none
  bool is_forbidden = false;         ///< by the rules: nothing was sent
  bool is_cancelled = false;         ///< the server leaves: as if it had not been tried
  std::chrono::milliseconds took{0};
};

class Courier {
 public:
  /// How many are under way at once; more wait.
  static constexpr size_t kHands = 16;

  explicit Courier(base::EventLoop& loop, http::OutboundLimits limits = {});
  ~Courier();

  /// From the next errand on. Certificates of authorities are read again, too.
  void set_rules(AddressRules rules);

  void send(Errand errand, std::function<void(Outcome)> done);
  /// Whether the receiver may be sent to, as things are.
  void check(Receiver receiver, std::function<void(base::Result<void>)> done);

 private:
  struct Shared;
  struct Piece {
    std::function<void()> work;
    std::function<void()> done;
  };
  void run(Piece piece);
  void finished(size_t hand);

  std::shared_ptr<const Shared> shared_;  ///< what the threads read
  http::OutboundLimits limits_;
  base::UniqueFd cancel_;
  base::EventLoop& loop_;
  std::vector<size_t> free_;
  std::deque<Piece> waiting_;
  std::vector<std::unique_ptr<base::Background>> hands_;  ///< gone first of all
};

}  // namespace muster::notify
