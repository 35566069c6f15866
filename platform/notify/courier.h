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
#include <string_view>
#include <vector>

#include "base/background.h"
#include "base/clock.h"
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

// When a delivery that failed is tried again, and when no more.
//
// Pure; thread-safe.

struct RetrySchedule {
  std::chrono::milliseconds first{10'000};
  std::chrono::milliseconds longest{3'600'000};
  std::chrono::milliseconds give_up_after{24 * 3'600'000};  ///< since what is told happened
};

/// The pause doubles with each attempt up to the longest, and is shortened by up to a half, so that
/// what failed together does not come back together. `attempts`: those that failed; `dice`: from 0
/// to 1. Nothing: it is given up.
std::optional<base::Time> next_attempt(const RetrySchedule& schedule, base::Time created,
                                       base::Time now, int attempts, double dice);

/// What an answer means for a delivery.
enum class Verdict {
  kArrived,
  kAgain,  ///< may be mended: no answer, 5xx, 408, 425, 429
  kNever,  ///< sent again, it would be refused again
  kGone,   ///< 410: the receiver wants no more of it
};
Verdict verdict_on(int status);

// The proof that a notification is from this server and has not been changed: HMAC-SHA256 over
// "TIME.BODY" with the subscription's key. The time is signed, too, so that a receiver can refuse
// what somebody has recorded and sends again later.
//
// Pure; thread-safe.

/// Header names.
inline constexpr const char* kSignatureHeader = "muster-signature";
inline constexpr const char* kEventHeader = "muster-event";
inline constexpr const char* kDeliveryHeader = "muster-delivery";

/// "t=1700000000,v1=<64 hexadecimal digits>". `key`: its bytes.
std::string signature_of(std::string_view key, base::Time now, std::string_view body);

}  // namespace muster::notify
