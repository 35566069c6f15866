// The proof that a notification is from this server and has not been changed: HMAC-SHA256 over
// "TIME.BODY" with the subscription's key. The time is signed, too, so that a receiver can refuse
// what somebody has recorded and sends again later.
//
// Pure; thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"

namespace muster::notify {

/// Header names.
inline constexpr const char* kSignatureHeader = "muster-signature";
inline constexpr const char* kEventHeader = "muster-event";
inline constexpr const char* kDeliveryHeader = "muster-delivery";

/// "t=1700000000,v1=<64 hexadecimal digits>". `key`: its bytes.
std::string signature_of(std::string_view key, base::Time now, std::string_view body);

}  // namespace muster::notify
