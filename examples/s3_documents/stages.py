"""The three stages a document goes through, and how the data of one of them is cleared."""

from pathlib import Path

import analysis
import database
import embedding
import parsing

import redrive


def parse(path):
    """Cut the document into chunks."""
    with database.opened() as db:
        if db.has(path, "parse"):
            return {"status": "skipped", "reason": "already_parsed"}
        chunks = parsing.chunks_of(Path(path))
        db.add_chunks(path, chunks)
        db.finish(path, "parse")
        return {"status": "parsed", "chunks": len(chunks)}


def embed(path):
    """A vector for each chunk, kept one by one: a long document may fail in the middle."""
    job = redrive.current_job()
    with database.opened() as db:
        if db.has(path, "embed"):
            return {"status": "skipped", "reason": "already_embedded"}
        chunks = db.chunks(path)
        for place, text in enumerate(chunks):
            db.add_vector(path, place, embedding.vector_of(text))
            job.progress(place + 1, len(chunks), "embedding")
        db.finish(path, "embed")
        return {"status": "embedded", "vectors": len(chunks)}


def analyze(path):
    """What it is about, which chunk says it best, which documents are near."""
    with database.opened() as db:
        if db.has(path, "analyze"):
            return {"status": "skipped", "reason": "already_analyzed"}
        found = analysis.of(path, db)
        db.add_analysis(path, found)
        db.finish(path, "analyze")
        return {"status": "analyzed", **found}


def clear(path):
    """Run before a stage is run again, with that stage's name: only its data goes."""
    with database.opened() as db:
        db.clear(path, redrive.current_job().step)
