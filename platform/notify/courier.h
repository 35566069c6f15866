// Sends notifications to their receivers on its own threads: resolves the host name, checks the
// addresses against the rules, signs the body and makes the request. Also decides when a failed
// delivery is tried again.
//
// On the EventLoop's thread; the loop must outlive it. Callbacks are called on that thread, and
// never after the courier was destroyed. The destructor cancels pending requests and does not wait
// for them.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/event_loop.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "http/message.h"
#include "http/outbound.h"
#include "notify/address_rules.h"

namespace muster::notify {

struct OutgoingNotification {
  Receiver receiver;
  http::Headers headers;
  std::string body;
};

/// The result of one attempt.
struct DeliveryOutcome {
  int status = 0;                    ///< HTTP status; 0: no answer
  std::string answer;                ///< the body, as far as it was read
  std::optional<base::Error> fault;  ///< why there was no answer
  bool is_forbidden = false;         ///< the rules forbid it; nothing was sent
  bool is_cancelled = false;         ///< the server stops; does not count as an attempt
  std::chrono::milliseconds took{0};
};

class Courier {
 public:
  /// The number of threads; more errands wait.
  static constexpr size_t kHands = 16;

  explicit Courier(base::EventLoop& loop, http::OutboundLimits limits = {});
  ~Courier();

  /// Sets the rules for later errands, and reads the certificate authorities again.
  void set_rules(AddressRules rules);

  void send(OutgoingNotification errand, std::function<void(DeliveryOutcome)> done);
  /// Whether the rules allow requests to the receiver now.
  void check(Receiver receiver, std::function<void(base::Result<void>)> done);

 private:
  struct Shared;
  struct Piece {
    std::function<void()> work;
    std::function<void()> done;
  };
  void run(Piece piece);
  void finished(size_t hand);

  std::shared_ptr<const Shared> shared_;  ///< read by the threads
  http::OutboundLimits limits_;
  base::UniqueFd cancel_;
  base::EventLoop& loop_;
  std::vector<size_t> free_;
  std::deque<Piece> waiting_;
  std::vector<std::unique_ptr<base::Background>> hands_;  ///< destroyed first
};

// Retries. These functions are pure and thread-safe.

struct RetrySchedule {
  std::chrono::milliseconds first{10'000};
  std::chrono::milliseconds longest{3'600'000};
  std::chrono::milliseconds give_up_after{24 * 3'600'000};  ///< after the event
};

/// The time of the next attempt; nothing: the delivery is given up. The pause before it doubles
/// with each attempt up to the longest pause, and is shortened by up to a half, so that deliveries
/// that failed together are not tried again together. `attempts`: how many have failed; `dice`: a
/// random number from 0 to 1.
std::optional<base::Time> next_attempt(const RetrySchedule& schedule, base::Time created,
                                       base::Time now, int attempts, double dice);

/// The meaning of an answer for a delivery.
enum class DeliveryVerdict {
  kArrived,
  kAgain,  ///< may succeed later: no answer, 5xx, 408, 425, 429
  kNever,  ///< would be refused again
  kGone,   ///< 410: the receiver no longer exists
};
DeliveryVerdict verdict_on(int status);

// Signatures prove that a notification is from this server and unchanged: HMAC-SHA256 over
// "TIME.BODY" with the key of the subscription. Because the time is signed, too, a receiver can
// refuse a recorded notification that is sent again later. Pure and thread-safe.

/// Names of headers.
inline constexpr const char* kSignatureHeader = "muster-signature";
inline constexpr const char* kEventHeader = "muster-event";
inline constexpr const char* kDeliveryHeader = "muster-delivery";

/// "t=1700000000,v1=<64 hexadecimal digits>". `key`: its bytes.
std::string signature_of(std::string_view key, base::Time now, std::string_view body);

}  // namespace muster::notify
