// Users, tokens, secrets and audit records as the database stores them: a damaged row is an error,
// never a crash.
#include <cstdlib>
#include <string_view>

#include "store/records.h"

namespace {

template <class T>
void comes_back(std::string_view document) {
  const auto value = muster::store::from_document<T>(document);
  if (!value) return;
  const auto again = muster::store::from_document<T>(muster::store::to_document(*value));
  if (!again || *again != *value) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster;
  const std::string_view document(reinterpret_cast<const char*>(data), size);
  comes_back<access::User>(document);
  comes_back<access::Token>(document);
  comes_back<access::Secret>(document);
  comes_back<access::AuditRecord>(document);
  return 0;
}
