# The compile options of all targets, and the two functions that define the targets of a folder:
#
#   muster_library(NAME SOURCES a.cc b.cc DEPENDS x y)   one static library for each folder
#   muster_test(NAME SOURCES a_test.cc DEPENDS x)        its unit tests, one program for each folder or layer
include_guard()
include(GoogleTest)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()
find_program(MOLD mold)
if(MOLD)
  add_link_options(-fuse-ld=mold)
endif()

# The fixed cost of a translation unit, its headers and their templates, is three seconds or more; most of our
# files add far less. So the sources of a target are compiled in batches (unity builds). Names that are local
# to a file are therefore unique within its folder: tests/local_names_test.py. The preset `alone` has no
# batches; `make lint` uses it to compile each file alone, which shows that the file includes what it uses.
#
# Larger batches cost less CPU in all (docs/benchmarks.md, make bench-build), smaller batches keep both cores
# busy, memory below a gigabyte, and the build after a change short. CMake compiles sources with their own
# options (the SIMD kernels) alone.
#
# Headers are not precompiled: with batches, reading a precompiled header takes as long as it saves.
option(MUSTER_UNITY "compile the sources of a target in batches" ON)
set(CMAKE_UNITY_BUILD ${MUSTER_UNITY})
set(CMAKE_UNITY_BUILD_BATCH_SIZE 48)

set(MUSTER_SANITIZE "" CACHE STRING "sanitizers of this build: address,undefined or thread")
if(MUSTER_SANITIZE)
  add_compile_options(-fsanitize=${MUSTER_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${MUSTER_SANITIZE})
  # The check of virtual tables uses a pipe to find out whether memory may be read. In a test that uses up all
  # descriptors, this check reports false errors.
  add_compile_options(-fno-sanitize=vptr)
endif()

option(MUSTER_FUZZ "build the fuzzers (needs clang)" OFF)
if(MUSTER_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all)
  add_link_options(-fsanitize=address,undefined)
endif()

# Switched off: designated initialisers may leave members at their defaults; -Wrestrict and
# -Wmaybe-uninitialized are wrong about inlined std::string in gcc 12 (GCC bugs 105651, 105562).
add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wold-style-cast
                    -Woverloaded-virtual -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-Werror -Wno-restrict -Wno-maybe-uninitialized)
  # A batch of sources needs half a gigabyte in any case; garbage collection before that takes a tenth of the
  # compile time.
  add_compile_options(--param=ggc-min-heapsize=524288)
endif()

# The folders that a first build compiles together, in few and large batches: a batch costs two to five seconds before
# the first line of its own, which is a third of the time of `make quickstart`. Other builds have smaller batches,
# and an optimisation for each folder (docs/decisions/0035-first-build.md).
set(MUSTER_FIRST_BASICS muster_access muster_http muster_cron muster_words muster_sweep muster_wire)
set(MUSTER_FIRST_BUILD muster_workspace muster_schedule muster_simulate muster_engine muster_config muster_notify
    muster_store muster_logs muster_control muster_server muster_service muster_cli)

# MUSTER_OPTIMISE: the optimisation of a release build instead of -O3, for folders that do not gain from -O3.
#
# IN names a library in which several small folders are compiled together, in shared batches; it is made where
# the first of them is. Its folders follow each other in the order of the build, and depend on no library
# between them.
function(muster_library name)
  cmake_parse_arguments(ARG "" "IN" "SOURCES;DEPENDS" ${ARGN})
  if(MUSTER_PARTS STREQUAL process AND name IN_LIST MUSTER_FIRST_BASICS)
    set(ARG_IN muster_first_basics)
  elseif(MUSTER_PARTS STREQUAL process AND name IN_LIST MUSTER_FIRST_BUILD)
    set(ARG_IN muster_first_build)
  endif()
  if(ARG_IN AND MUSTER_UNITY)
    if(NOT TARGET ${ARG_IN})
      muster_library(${ARG_IN})
    endif()
    set_property(TARGET ${ARG_IN} APPEND PROPERTY MUSTER_FOLDERS ${name})
    get_target_property(neighbours ${ARG_IN} MUSTER_FOLDERS)
    list(REMOVE_ITEM ARG_DEPENDS ${neighbours})
    target_sources(${ARG_IN} PRIVATE ${ARG_SOURCES})
    target_link_libraries(${ARG_IN} PUBLIC ${ARG_DEPENDS})
    add_library(${name} INTERFACE)
    set_property(TARGET ${name} PROPERTY MUSTER_COMPILED_IN ${ARG_IN})
    target_link_libraries(${name} INTERFACE ${ARG_IN})
    return()
  endif()
  add_library(${name} STATIC ${ARG_SOURCES})
  if(MUSTER_OPTIMISE)
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:${MUSTER_OPTIMISE}>)
  endif()
  target_link_libraries(${name} PUBLIC ${ARG_DEPENDS})
endfunction()

# Sets VARIABLE to the target that compiles the sources of a folder's library: the library, or the one named by IN.
function(muster_compiled_in name variable)
  get_target_property(target ${name} MUSTER_COMPILED_IN)
  if(NOT target)
    set(target ${name})
  endif()
  set(${variable} ${target} PARENT_SCOPE)
endfunction()

# Compiles the sources of a target in COUNT batches of equal size, however many sources it gets. A last batch of
# two sources would cost half as much as a full one.
# Has no effect on a folder whose sources another target compiles.
function(muster_batches target count)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL INTERFACE_LIBRARY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(LENGTH sources number)
  math(EXPR size "(${number} + ${count} - 1) / ${count}")
  set_target_properties(${target} PROPERTIES UNITY_BUILD_BATCH_SIZE ${size})
endfunction()

# The options of a test program; muster_test() calls this. Test code is optimised less: it is a third of the
# compiled code, and runs only once. The tested libraries are compiled as they are shipped.
function(muster_test_options name)
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-Og>)
endfunction()

# COMPUTES: the tests of the program use a whole core or more, for example ranks that spin. Each of its tests
# then takes three slots of scripts/run_tests.sh. The label of each case is the name of its program.
function(muster_test name)
  cmake_parse_arguments(ARG "COMPUTES" "" "SOURCES;DEPENDS" ${ARGN})
  set(slots 1)
  if(ARG_COMPUTES)
    set(slots 3)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} GTest::gtest GTest::gtest_main)
  muster_test_options(${name})
  # Only a hang reaches the bound, also on a slow machine beside other programs. Property tests take minutes in a
  # sanitizer's unoptimised build.
  set(bound 300)
  if(MUSTER_SANITIZE)
    set(bound 1800)
  endif()
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
    PROPERTIES LABELS ${name} TIMEOUT ${bound} PROCESSORS ${slots})
endfunction()
