// Users, tokens, secrets and audit records as the database keeps them: a damaged row is an error,
// never a crash.
#include <cstdlib>
#include <string_view>

#include "store/account_document.h"

namespace {

template <class Read, class Write>
void comes_back(std::string_view document, const Read& read, const Write& write) {
  const auto value = read(document);
  if (!value) return;
  const auto again = read(write(*value));
  if (!again || *again != *value) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::store;
  const std::string_view document(reinterpret_cast<const char*>(data), size);
  comes_back(document, from_user_document, to_user_document);
  comes_back(document, from_token_document, to_token_document);
  comes_back(document, from_secret_document, to_secret_document);
  comes_back(document, from_audit_document, to_audit_document);
  return 0;
}
