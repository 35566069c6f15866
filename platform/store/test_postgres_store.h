// For tests of the store on PostgreSQL: a fixture with a database of its own.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "base/test_folder.h"
#include "store/postgres_store.h"
#include "store/test_postgres.h"
#include "store/test_values.h"

namespace muster::store {

class Postgres : public testing::Test {
 protected:
  std::unique_ptr<PostgresStore> open(const std::string& url) const {
    auto store = PostgresStore::open(url, folder_);
    EXPECT_TRUE(store) << store.error().to_string();
    return *std::move(store);
  }
  std::unique_ptr<PostgresStore> leading(const std::string& url) const {
    auto store = open(url);
    EXPECT_TRUE(*store->try_to_lead("here"));
    return store;
  }

  TestPostgres& server_ = TestPostgres::instance();
  std::string url_ = server_.new_url();
  const base::TestFolder folder_;
};

inline Result<void> add(PostgresStore& store, const job::Job& job) {
  return store.commit({.new_jobs = {{.job = &job, .idempotency_key = job.id}}});
}

/// Repeats the call while the database does not answer.
template <class Call>
auto once_available(Call call) -> decltype(call()) {
  while (true) {
    auto done = call();
    if (done || done.error().code != base::ErrorCode::kUnavailable) return done;
  }
}

inline Names ids(PostgresStore& store) {
  const auto contents = once_available([&] { return store.load(); });
  EXPECT_TRUE(contents) << contents.error().to_string();
  Names ids;
  for (const job::Job& job : contents->jobs) ids.push_back(job.id);
  return ids;
}

}  // namespace muster::store
