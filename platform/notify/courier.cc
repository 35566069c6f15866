#include "notify/courier.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <span>
#include <utility>

#include "base/log.h"
#include "base/random.h"

namespace muster::notify {

using base::Error;
using base::ErrorCode;
using base::Result;
using http::IpAddress;

/// Immutable; replaced as a whole.
struct Courier::Shared {
  AddressRules rules;
  Result<http::TlsContext> tls = http::client_context({});
};

namespace {

/// The addresses of the receiver, all of which must be allowed: a name with a private and a public
/// address is refused.
Result<std::vector<IpAddress>> allowed_addresses(const Receiver& receiver,
                                                 const AddressRules& rules,
                                                 std::chrono::milliseconds patience, int cancel) {
  MUSTER_CHECK(rules.check(receiver));
  MUSTER_TRY(std::vector<IpAddress> addresses, http::addresses_of(receiver.host, patience, cancel));
  for (const IpAddress& address : addresses) MUSTER_CHECK(rules.check(receiver, address));
  return addresses;
}

DeliveryOutcome outcome_of(Error error, bool is_forbidden) {
  const bool is_cancelled = error.code == ErrorCode::kTimeout;
  return {.fault = std::move(error), .is_forbidden = is_forbidden, .is_cancelled = is_cancelled};
}

DeliveryOutcome make_request(const OutgoingNotification& errand, const AddressRules& rules,
                             const http::TlsContext& tls, const http::OutboundLimits& limits,
                             int cancel) {
  const Receiver& receiver = errand.receiver;
  auto addresses = allowed_addresses(receiver, rules, limits.connect, cancel);
  if (!addresses) {
    const bool is_forbidden = addresses.error().code == ErrorCode::kRefused;
    return outcome_of(std::move(addresses).error(), is_forbidden);
  }
  auto answer = http::post(*addresses,
                           {.over_tls = receiver.over_tls,
                            .host = receiver.host,
                            .port = receiver.port,
                            .target = receiver.target,
                            .headers = errand.headers,
                            .body = errand.body},
                           tls, limits, cancel);
  if (!answer) return outcome_of(std::move(answer).error(), false);
  return {.status = answer->status, .answer = std::move(answer->body)};
}

}  // namespace

Courier::Courier(base::EventLoop& loop, http::OutboundLimits limits)
    : limits_(limits), cancel_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), loop_(loop) {
  hands_.resize(kHands);
  for (size_t hand = kHands; hand > 0; --hand) free_.push_back(hand - 1);
  set_rules({});
}

Courier::~Courier() {
  ::eventfd_write(cancel_.get(), 1);
  hands_.clear();
}

void Courier::set_rules(AddressRules rules) {
  shared_ = std::make_shared<const Shared>(Shared{.rules = std::move(rules)});
  if (!shared_->tls) base::log_error(shared_->tls.error().to_string());
}

void Courier::send(OutgoingNotification errand, std::function<void(DeliveryOutcome)> done) {
  auto outcome = std::make_shared<DeliveryOutcome>();
  auto work = [outcome, errand = std::move(errand), shared = shared_, limits = limits_,
               cancel = cancel_.get()] {
    const auto began = std::chrono::steady_clock::now();
    *outcome = shared->tls ? make_request(errand, shared->rules, *shared->tls, limits, cancel)
                           : DeliveryOutcome{.fault = shared->tls.error()};
    outcome->took = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::steady_clock::now() - began);
  };
  run({.work = std::move(work),
       .done = [outcome, done = std::move(done)] { done(std::move(*outcome)); }});
}

void Courier::check(Receiver receiver, std::function<void(Result<void>)> done) {
  auto result = std::make_shared<Result<void>>();
  auto work = [result, receiver = std::move(receiver), shared = shared_, patience = limits_.connect,
               cancel = cancel_.get()] {
    const auto allowed = allowed_addresses(receiver, shared->rules, patience, cancel);
    if (!allowed) *result = allowed.error();
  };
  run({.work = std::move(work), .done = [result, done = std::move(done)] { done(*result); }});
}

void Courier::run(Piece piece) {
  if (free_.empty()) return waiting_.push_back(std::move(piece));
  const size_t hand = free_.back();
  free_.pop_back();
  if (hands_[hand] == nullptr) hands_[hand] = std::make_unique<base::Background>(loop_);
  hands_[hand]->run(std::move(piece.work), [this, hand, done = std::move(piece.done)] {
    finished(hand);
    done();
  });
}

void Courier::finished(size_t hand) {
  free_.push_back(hand);
  if (waiting_.empty()) return;
  Piece next = std::move(waiting_.front());
  waiting_.pop_front();
  run(std::move(next));
}

std::optional<base::Time> next_attempt(const RetrySchedule& schedule, base::Time created,
                                       base::Time now, int attempts, double dice) {
  constexpr int kMostDoublings = 20;
  const base::Time end = created + schedule.give_up_after;
  if (now >= end) return std::nullopt;
  const double doubled = static_cast<double>(schedule.first.count()) *
                         static_cast<double>(1 << std::clamp(attempts - 1, 0, kMostDoublings));
  const double pause =
      std::min(doubled, static_cast<double>(std::max(schedule.first, schedule.longest).count())) *
      (1 - dice / 2);
  const base::Time next = now + std::chrono::duration_cast<std::chrono::nanoseconds>(
                                    std::chrono::duration<double, std::milli>(pause));
  // The last attempt is made when the time is over, not before.
  return std::min(next, end);
}

DeliveryVerdict verdict_on(int status) {
  if (status >= 200 && status < 300) return DeliveryVerdict::kArrived;
  if (status == 410) return DeliveryVerdict::kGone;
  const bool may_pass = status == 408 || status == 425 || status == 429;
  if (status >= 400 && status < 500 && !may_pass) return DeliveryVerdict::kNever;
  // Redirects are not followed, but may be corrected later.
  return DeliveryVerdict::kAgain;
}

std::string signature_of(std::string_view key, base::Time now, std::string_view body) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(now).time_since_epoch().count();
  const std::string time = std::to_string(seconds);
  std::string text = time + ".";
  text += body;
  std::array<unsigned char, EVP_MAX_MD_SIZE> code{};
  unsigned int size = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), code.data(), &size);
  return "t=" + time + ",v1=" + base::to_hex(std::span<const uint8_t>(code).first(size));
}

}  // namespace muster::notify
