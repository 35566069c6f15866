// A server that kills itself with SIGKILL right after its N-th commit, for e2e_crash_points.py. It has
// the process engine in its default settings.
//
//   crash_server SHIM
//
//   MUSTER_CRASH_AFTER_COMMIT   N; if it is not set, the server does not kill itself
//   MUSTER_DECLARE_GPUS         the declared GPUs, as in the server's configuration
//
// Prints "ready" once its socket is open. The environment determines its paths, as for `muster`.
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/host_facts.h"
#include "engine/process/process_engine.h"
#include "service/service.h"
#include "store/sqlite_store.h"

namespace {

using muster::base::Result;
using muster::config::ServeOptions;
using muster::store::Store;

class CrashingStore : public Store {
 public:
  CrashingStore(std::unique_ptr<Store> store, int commits_left)
      : store_(std::move(store)), commits_left_(commits_left) {}

  Result<muster::store::Contents> load() override { return store_->load(); }
  Result<std::optional<std::string>> find_by_key(const std::string& key) override {
    return store_->find_by_key(key);
  }
  Result<std::vector<muster::access::AuditRecord>> audit(
      const muster::access::AuditQuery& query) override {
    return store_->audit(query);
  }
  Result<void> ping() override { return store_->ping(); }
  Result<void> commit(const muster::store::Batch& batch) override {
    const Result<void> done = store_->commit(batch);
    if (done && --commits_left_ == 0) ::kill(::getpid(), SIGKILL);
    return done;
  }

 private:
  std::unique_ptr<Store> store_;
  int commits_left_;
};

int commits_until_crash() {
  const char* text = std::getenv("MUSTER_CRASH_AFTER_COMMIT");
  return text == nullptr ? 0 : std::atoi(text);
}

Result<muster::service::OpenedStore> open_store(const std::string& file,
                                                const muster::store::PasswordSource&,
                                                const muster::config::Paths&) {
  MUSTER_TRY(auto store, muster::store::SqliteStore::open(file));
  return muster::service::OpenedStore{
      .store = std::make_unique<CrashingStore>(std::move(store), commits_until_crash())};
}

muster::service::Makers makers(const std::filesystem::path& shim) {
  return {
      .open_store = open_store,
      .make_engine =
          [shim](muster::base::EventLoop& loop, const std::filesystem::path& folder,
                 const ServeOptions& options) -> Result<std::unique_ptr<muster::engine::Engine>> {
        muster::engine::ProcessEngineOptions how{.folder = folder, .shim = shim};
        if (!options.declared_gpus.empty()) {
          MUSTER_TRY(how.declared_gpus, muster::engine::parse_declared_gpus(options.declared_gpus));
        }
        return std::make_unique<muster::engine::ProcessEngine>(loop, std::move(how));
      },
      .ready = [] { std::cout << "ready" << std::endl; },
      .site = {.user = muster::engine::user_name(), .rank_agent = shim},
      .version = MUSTER_VERSION};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: crash_server SHIM\n";
    return 2;
  }
  ServeOptions options;
  if (const char* declared = std::getenv("MUSTER_DECLARE_GPUS")) options.declared_gpus = declared;
  const Result<void> served = muster::service::serve(
      options, [options] { return Result<ServeOptions>(options); }, makers(argv[1]));
  if (served) return 0;
  std::cerr << "crash_server: " << served.error().to_string() << "\n";
  return 1;
}
