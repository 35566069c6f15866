// A client that runs Slurm's own programs: sbatch, squeue, scancel, sinfo, scontrol, and sacct if
// there is an accounting database. For clusters without slurmrestd. Requires Slurm 21.08 or later.
//
// On the loop's thread, like SlurmClient.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "base/result.h"
#include "engine/slurm/slurm_client.h"
#include "engine/slurm/slurm_programs.h"

namespace muster::engine::slurm {

struct CommandOptions {
  std::string folder;  ///< of the programs; empty: searched in PATH
  /// A program that takes longer is killed. Slurm's own timeout for its controller is 10 s, or 20 s
  /// with a backup controller.
  std::chrono::milliseconds patience{45000};
  size_t submits_at_once = 8;  ///< sbatch mostly waits for the controller
};

class CommandClient : public SlurmClient {
 public:
  /// kNotFound: a program is missing.
  static base::Result<std::unique_ptr<CommandClient>> open(base::EventLoop& loop,
                                                           CommandOptions options = {});
  CommandClient(const CommandClient&) = delete;
  CommandClient& operator=(const CommandClient&) = delete;

  void submit(Submission submission, Then<uint64_t> then) override;
  void jobs(Then<std::vector<ListedJob>> then) override;
  void past_jobs(std::vector<uint64_t> ids, Then<std::vector<ListedJob>> then) override;
  void cancel(std::vector<uint64_t> ids, Then<void> then) override;
  void nodes(Then<std::vector<ListedNode>> then) override;
  void facts(Then<ClientFacts> then) override;

 private:
  CommandClient(base::EventLoop& loop, CommandOptions options);
  std::string program(const std::string& name) const;
  void ask(const std::string& name, std::vector<std::string> arguments, ProgramRunner::Then then);

  base::EventLoop& loop_;
  CommandOptions options_;
  std::vector<std::string> environment_;  ///< of this process
  ProgramRunner submits_;
  ProgramRunner others_;  ///< must not wait for hundreds of submissions
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace muster::engine::slurm
