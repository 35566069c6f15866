#include "store/postgres_url.h"

#include <memory>

#include "store/postgres_library.h"
#include "store/postgres_store.h"

namespace muster::store {

namespace {

std::string parameter_value(const PQconninfoOption* options, std::string_view keyword) {
  for (const PQconninfoOption* option = options; option->keyword != nullptr; ++option) {
    if (keyword == option->keyword) return option->val == nullptr ? "" : option->val;
  }
  return {};
}

std::string shown(const PQconninfoOption* options) {
  const auto with = [&](const char* before, const char* keyword, const char* after) {
    const std::string value = parameter_value(options, keyword);
    return value.empty() ? value : before + value + after;
  };
  return "postgres://" + with("", "user", "@") + with("", "host", "") + with(":", "port", "") +
         with("/", "dbname", "");
}

}  // namespace

bool is_postgres_url(const std::string& where) {
  return where.starts_with("postgres://") || where.starts_with("postgresql://");
}

base::Result<PostgresUrl> PostgresUrl::parse(const std::string& text) {
  MUSTER_CHECK(load_libpq());
  char* complaint = nullptr;
  const std::unique_ptr<PQconninfoOption, decltype(libpq().PQconninfoFree)> options(
      is_postgres_url(text) ? libpq().PQconninfoParse(text.c_str(), &complaint) : nullptr,
      libpq().PQconninfoFree);
  libpq().PQfreemem(complaint);
  if (!options) {
    return base::Error{.code = base::ErrorCode::kInvalid,
                       .what = "the URL of the store cannot be read",
                       .advice =
                           "write postgres://USER@HOST/DATABASE; in a name or a password, "
                           "characters such as '@', '/' and '%' are written %40, %2F and %25"};
  }
  return PostgresUrl{.text = text,
                     .shown = store::shown(options.get()),
                     .password = parameter_value(options.get(), "password")};
}

std::string PostgresUrl::without_password(std::string message) const {
  if (password.empty()) return message;
  const std::string_view blot = "(password)";
  for (size_t at = message.find(password); at != std::string::npos;
       at = message.find(password, at + blot.size())) {
    message.replace(at, password.size(), blot);
  }
  return message;
}

}  // namespace muster::store
