#include "store/postgres_library.h"

#include <dlfcn.h>

namespace muster::store {

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

// All versions of PostgreSQL since 8.2 have .so.5.
constexpr const char* kName = "libpq.so.5";

const Result<PostgresLibrary>& only_library() {
  static const Result<PostgresLibrary> library = load_libpq(kName);
  return library;
}

}  // namespace

LoadedFunctions::Address LoadedFunctions::operator()(const char* name) {
  void* address = ::dlsym(handle_, name);
  if (address == nullptr) missing_ += (missing_.empty() ? "" : ", ") + std::string(name);
  return {address};
}

// Never unloaded: its dependencies register exit handlers and thread keys.
Result<PostgresLibrary> load_libpq(const std::string& path) {
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* reason = ::dlerror();
    return Error{.code = ErrorCode::kUnavailable,
                 .what = "PostgreSQL's client library cannot be loaded: " +
                         std::string(reason == nullptr ? path : reason),
                 .advice = "install libpq (Debian package libpq5)"};
  }
  PostgresLibrary library{.find = LoadedFunctions(handle)};
  if (library.find.missing().empty()) return library;
  return Error{.code = ErrorCode::kUnavailable,
               .what = path + " lacks " + library.find.missing(),
               .advice = "install libpq of PostgreSQL 14 or newer (Debian package libpq5)"};
}

Result<void> load_libpq() {
  const Result<PostgresLibrary>& library = only_library();
  if (!library) return library.error();
  return {};
}

const PostgresLibrary& libpq() {
  return *only_library();
}

}  // namespace muster::store
