#include "store/postgres_library.h"

#include <gtest/gtest.h>

namespace muster::store {
namespace {

TEST(PostgresLibrary, LibpqHasAllFunctionsOfTheStore) {
  const auto library = load_libpq("libpq.so.5");

  ASSERT_TRUE(library) << library.error().to_string();
  EXPECT_EQ(library->find.missing(), "");
  EXPECT_NE(library->PQclear, nullptr);
}

TEST(PostgresLibrary, AdvisesWhatToInstallIfItIsMissing) {
  const auto library = load_libpq("/nowhere/libpq.so.5");

  ASSERT_FALSE(library);
  EXPECT_EQ(library.error().code, base::ErrorCode::kUnavailable);
  EXPECT_NE(library.error().what.find("/nowhere/libpq.so.5"), std::string::npos);
  EXPECT_NE(library.error().advice.find("libpq5"), std::string::npos);
}

TEST(PostgresLibrary, NamesTheMissingFunctions) {
  const auto library = load_libpq("libm.so.6");

  ASSERT_FALSE(library);
  EXPECT_EQ(library.error().code, base::ErrorCode::kUnavailable);
  EXPECT_TRUE(library.error().what.starts_with("libm.so.6 lacks PQclear, PQcmdTuples, "))
      << library.error().what;
}

}  // namespace
}  // namespace muster::store
