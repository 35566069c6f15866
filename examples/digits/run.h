// A process of a training, from its options to its exit code.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "idx.h"
#include "options.h"
#include "training.h"

namespace muster::digits {

/// The whole program: reads the arguments (without the program's name), prints faults or the help,
/// and calls the function of the chosen strategy, whose exit code it returns.
int run_program(std::span<const std::string_view> arguments,
                const std::function<int(const Options&)>& ring,
                const std::function<int(const Options&)>& with_servers);

/// Runs a rank of a world that trains by all-reduce. Its rank and world size come from the
/// environment.
int run_ring(const Options& options);

/// Runs a task of a cluster with parameter servers. TF_CONFIG determines whether it serves or
/// trains.
int run_with_servers(const Options& options);

/// Prints a failure to standard error. Returns the exit code, for `return complain(...)`.
int complain(const std::string& fault, int code = 1);

/// Reports an epoch to Muster, without the numbers that were not measured.
void report_epoch(const EpochReport& epoch, const Options& options);

/// Prints the number of images to standard output, unless the output is for programs.
void print_data(const Dataset& data, const Options& options);

/// Prints the outcome, with `holders` as for outcome_text(), and saves its weights to the file of
/// --save. Returns the exit code.
int finish(const Outcome& outcome, std::string_view holders, Progress& progress,
           const Options& options);

}  // namespace muster::digits
