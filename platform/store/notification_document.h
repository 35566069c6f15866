// Subscriptions and deliveries as the documents (CBOR) that the store keeps.
//
// Pure. A field that is not there, because an earlier Muster wrote it, has its default.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "job/notification.h"

namespace muster::store {

std::string to_subscription_document(const job::Subscription& subscription);
base::Result<job::Subscription> from_subscription_document(std::string_view document);

std::string to_delivery_document(const job::Delivery& delivery);
base::Result<job::Delivery> from_delivery_document(std::string_view document);

}  // namespace muster::store
