// The fields of subscriptions and deliveries as the store keeps them, one row each
// (record/table.h).
#pragma once

#include "job/notification.h"
#include "record/table.h"
#include "record/words.h"

namespace muster::job {

const record::Table& table_of(const Subscription*);
const record::Table& table_of(const Delivery*);

/// With "ping", which no subscription may ask for.
record::Words<Happening> words_of(const Happening*);

}  // namespace muster::job
